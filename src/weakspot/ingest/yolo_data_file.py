"""The file `data.yaml` of YOLO data sets: folders by split, and names of classes.

Only the part of YAML is read that such files use: plain and quoted words, lists and mappings in both notations. Class names are
always text here, where a full YAML reader turns `no` and `on` into truth values. Keys that nobody needs are passed over unread.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from weakspot.core.errors import DataError

SPLIT_KEYS = ("train", "val", "test")
_WANTED = (*SPLIT_KEYS, "path", "names")
_TOP_KEY = re.compile(r"([A-Za-z_][\w-]*)\s*:(?:\s+(.*))?$")
_MEMBER = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^:'"\[\]{},]+?)\s*:\s+(.*)$""")
_FLOW_TOKEN = re.compile(
    r"""\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[\[\]{},]|:(?=\s)|(?:[^\[\]{},:"'\s]|:(?!\s))(?:[^\[\]{},:]|:(?!\s))*)"""
)
_NOT_READ = ("|", ">", "&", "*", "!", "%", "@", "`")

Value = str | list[str] | dict[str, str]


@dataclass(frozen=True, kw_only=True)
class YoloDataFile:
    """What a data file says.

    Args:
        path: folder that the others start at; empty: the folder of the file.
        splits: files or folders of images by key: train, val, test.
        names: class name by number.
    """

    path: str
    splits: Mapping[str, tuple[str, ...]]
    names: Mapping[int, str]


def parse_data_file(text: str, *, where: str) -> YoloDataFile:
    """Read the text of a data file.

    Raises:
        DataError: naming the key that cannot be read, or what is missing.
    """
    values = {
        name: _value(name, lines, where) for name, lines in _blocks(text).items() if name in _WANTED
    }
    splits = {key: _listed(values[key]) for key in SPLIT_KEYS if values.get(key)}
    names = _class_names(values.get("names", ""), where)
    if not splits or not names:
        missing = "names of classes" if splits else "train, val or test"
        raise DataError(
            f"The data file has no {missing}.",
            where=where,
            fix="Write names, and at least one of train, val and test.",
        )
    path = values.get("path", "")
    return YoloDataFile(path=path if isinstance(path, str) else "", splits=splits, names=names)


def looks_like_data_file(text: str) -> bool:
    """Return whether text has the keys of a data file at its top: names, and train or val."""
    keys = set(_blocks(text))
    return "names" in keys and bool(keys & {"train", "val"})


def _blocks(text: str) -> dict[str, list[str]]:
    """Return the lines of every key at the top, without comments; the first is what stands beside the key."""
    blocks: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.removeprefix("\ufeff").splitlines():
        plain = _without_comment(line)
        found = _TOP_KEY.match(plain)
        if found is not None:
            current = blocks.setdefault(found[1], [])
            current.clear()
            current.append((found[2] or "").strip())
        elif plain.strip() and plain.strip() not in ("---", "..."):
            current.append(plain)
    return blocks


def _without_comment(line: str) -> str:
    quote = ""
    for place, character in enumerate(line):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'" and (
            not line[:place].strip() or line[:place].rstrip()[-1] in "[{,:-"
        ):
            quote = character
        elif character == "#" and (place == 0 or line[place - 1].isspace()):
            return line[:place].rstrip()
    return line.rstrip()


def _value(name: str, lines: list[str], where: str) -> Value:
    first, rest = lines[0], lines[1:]
    if first.startswith(("[", "{")):
        return _flow(" ".join([first, *(line.strip() for line in rest)]), name, where)
    if first.startswith(_NOT_READ) or (first and rest):
        raise _unread(name, first, where)
    if first or not rest:
        return _word(first, name, where)
    if len({len(line) - len(line.lstrip()) for line in rest}) > 1:
        raise _unread(name, rest[0].strip(), where)
    if all(line.lstrip().startswith("- ") for line in rest):
        return [_word(line.lstrip()[2:].strip(), name, where) for line in rest]
    members = [_MEMBER.match(line.strip()) for line in rest]
    if any(member is None for member in members):
        bad = next(line for line, member in zip(rest, members, strict=True) if member is None)
        raise _unread(name, bad.strip(), where)
    return {
        _word(member[1], name, where): _word(member[2], name, where)
        for member in members
        if member is not None
    }


def _flow(text: str, name: str, where: str) -> Value:
    """Return a list `[a, b]` or a mapping `{0: a, 1: b}`."""
    tokens = _tokens(text, name, where)
    opening, inner, closing = tokens[0], tokens[1:-1], tokens[-1]
    if (opening, closing) not in (("[", "]"), ("{", "}")) or any(
        token in "[]{}" for token in inner
    ):
        raise _unread(name, text[:40], where)
    if inner and inner[-1] == ",":
        inner = inner[:-1]
    width = 2 if opening == "[" else 4
    items = [inner[place : place + width] for place in range(0, len(inner), width)]
    if opening == "[":
        if any(item[0] == "," or item[1:] not in ([], [","]) for item in items):
            raise _unread(name, text[:40], where)
        return [_word(item[0], name, where) for item in items]
    if any(len(item) < 3 or item[1] != ":" or item[3:] not in ([], [","]) for item in items):  # noqa: PLR2004 - name, colon, value
        raise _unread(name, text[:40], where)
    return {_word(item[0], name, where): _word(item[2], name, where) for item in items}


def _tokens(text: str, name: str, where: str) -> list[str]:
    tokens, place = [], 0
    text = text.rstrip()
    while place < len(text):
        found = _FLOW_TOKEN.match(text, place)
        if found is None:
            raise _unread(name, text[place : place + 40], where)
        tokens.append(found[1].strip())
        place = found.end()
    return tokens


def _word(text: str, name: str, where: str) -> str:
    if text.startswith('"') and text.endswith('"') and len(text) > 1:
        try:
            return str(json.loads(text))
        except ValueError as error:
            raise _unread(name, text, where) from error
    if text.startswith("'") and text.endswith("'") and len(text) > 1:
        return text[1:-1].replace("''", "'")
    if text.startswith((*_NOT_READ, "[", "{", '"', "'")):
        raise _unread(name, text, where)
    return "" if text in ("~", "null") else text


def _listed(value: Value) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _class_names(value: Value, where: str) -> dict[int, str]:
    if isinstance(value, list):
        return dict(enumerate(value))
    if isinstance(value, str):
        return {0: value} if value else {}
    if not all(number.isdigit() for number in value):
        raise DataError(
            "The classes under names are not numbered.",
            where=where,
            given=list(value)[:5],
            fix="Write them as 0: name.",
        )
    return {int(number): word for number, word in value.items()}


def _unread(name: str, text: str, where: str) -> DataError:
    return DataError(
        f"The value of {name!r} in the data file cannot be read.",
        where=where,
        given=text,
        fix="Write it as a word, as [a, b], or as one `- name` or `0: name` a line.",
    )
