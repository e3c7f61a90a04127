"""YOLO detection data: each box of the label files is a sample; `data.yaml` names folders and classes.

Of `data.yaml` only the part of YAML is read that such files use: plain and quoted words, lists and mappings in both notations.
Class names are always text here, where a full YAML reader turns `no` and `on` into truth values. Keys that nobody needs are
passed over unread.
"""

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from weakspot.core.dataset import RawSample, Split
from weakspot.core.errors import DataError
from weakspot.data.boxes import Box, BoxedImage, BoxOptions, Corners, cut_out
from weakspot.data.image_folder import is_image_name
from weakspot.data.locations import (
    ListedFile,
    UnreadableLocationError,
    file_facts,
    is_folder,
    is_there,
    join_location,
    list_files,
    parent_location,
    read_anew,
    shown_location,
)
from weakspot.data.source import (
    fingerprint_of_files,
    fingerprint_of_listing,
    fingerprint_of_values,
    parse_split,
)

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


_BOX_NUMBERS = 4
_MIN_POLYGON_NUMBERS = 6
_DATA_FILES = ("data.yaml", "data.yml", "dataset.yaml", "dataset.yml")
_NOWHERE = float("nan")
_NOT_A_BOX: Corners = (_NOWHERE, _NOWHERE, _NOWHERE, _NOWHERE)


def yolo_data_file(folder: str) -> str | None:
    for name in _DATA_FILES:
        location = join_location(folder, name)
        if is_there(location) and is_yolo_file(location):
            return location
    return None


def is_yolo_file(location: str) -> bool:
    try:
        return looks_like_data_file(read_anew(location).data.decode("utf-8", "replace"))
    except UnreadableLocationError:
        return False


@dataclass(frozen=True, kw_only=True)
class _LabelledImage:
    """An image with the lines of its label file."""

    file: ListedFile
    split: Split | None
    lines: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class YoloSource:
    """Boxes of a YOLO data set, each cut out of its image; polygons count as the box around them.

    Label files lie beside images, or in a folder `labels` where images lie in `images`. Images without one have no boxes.

    Args:
        location: the data file, usually `data.yaml`, or the folder that holds it.
        options: how boxes become samples.
        default_split: not needed: the keys train, val and test tell the split.
    """

    kind: ClassVar[str] = "yolo"
    location: str
    options: BoxOptions = field(default_factory=BoxOptions)
    default_split: Split | None = None

    def fingerprint(self) -> str:
        content = fingerprint_of_files(
            [self._data_location], self.kind, self.options, self.default_split
        )
        labels = (
            file_facts(place)
            for file, _ in self._listed
            if is_there(place := label_location(file.location))
        )
        images = fingerprint_of_listing(file for file, _ in self._listed)
        return fingerprint_of_values([content, images, fingerprint_of_listing(labels)])

    def count(self) -> int:
        return int(self._starts[-1])

    def read(self, start: int = 0) -> Iterator[RawSample]:
        return cut_out(self._boxed(start), self.options)

    def _boxed(self, start: int) -> Iterator[BoxedImage]:
        begin = int(np.searchsorted(self._starts, start, side="right")) - 1
        root = self._root
        for place in range(begin, len(self._images)):
            image = self._images[place]
            name = _name(image.file, root)
            skipped = max(0, start - int(self._starts[place]))
            boxes = [
                self._box(name, number, line) for number, line in enumerate(image.lines, start=1)
            ]
            split = image.split or self.default_split
            yield BoxedImage(
                location=image.file.location,
                name=name,
                image_id=name,
                split=None if split is None else split.value,
                size=None,
                boxes=tuple(boxes[skipped:]),
                n_boxes=len(boxes),
            )

    def _box(self, image: str, number: int, line: str) -> Box:
        code, corners = parse_line(line)
        label = self._data.names.get(code)
        reason, detail = "", ""
        if corners is None:
            reason, detail = "bad-box", f"line {number}: {line[:80]}"
        elif label is None:
            reason, detail = "unknown-class", f"line {number}: class {code}"
        return Box(
            key=f"{image}/{number}",
            annotation_id=str(number),
            category_id=str(code),
            label=label,
            corners=_NOT_A_BOX if corners is None else corners,
            are_shares=True,
            reason=reason,
            detail=detail,
        )

    @cached_property
    def _data_location(self) -> str:
        if not is_folder(self.location):
            return self.location
        found = yolo_data_file(self.location)
        if found is None:
            raise DataError(
                "The folder holds no data file of a YOLO data set.",
                where=shown_location(self.location),
                fix="Point to the file with the keys train, val and names.",
            )
        return found

    @cached_property
    def _data(self) -> YoloDataFile:
        text = read_anew(self._data_location).data.decode("utf-8-sig", "replace")
        return parse_data_file(text, where=shown_location(self._data_location))

    @cached_property
    def _root(self) -> str:
        return join_location(
            parent_location(self._data_location), self.options.images or self._data.path
        )

    @cached_property
    def _listed(self) -> tuple[tuple[ListedFile, Split | None], ...]:
        found: list[tuple[ListedFile, Split | None]] = []
        for key, places in self._data.splits.items():
            for place in places:
                found += [(file, parse_split(key)) for file in _images_at(self._place(place))]
        if not found:
            raise DataError(
                "The data file points to no images.",
                where=shown_location(self._data_location),
                given={key: list(places) for key, places in self._data.splits.items()},
                fix="Correct path, train, val and test there, or set [boxes] images to the folder they start at.",
            )
        return tuple(found)

    def _place(self, given: str) -> str:
        beside = parent_location(self._data_location)
        # Some tools write paths that start one folder below the data file.
        choices = [
            join_location(self._root, given),
            join_location(beside, given),
            join_location(beside, given.removeprefix("../")),
        ]
        for choice in choices:
            if is_there(choice):
                return choice
        raise DataError(
            "There is nothing where the data file points to.",
            where=shown_location(self._data_location),
            given=given,
            fix="Correct path, train, val and test there, or set [boxes] images to the folder they start at.",
        )

    @cached_property
    def _images(self) -> tuple[_LabelledImage, ...]:
        labelled = (
            _LabelledImage(file=file, split=split, lines=_label_lines(file.location))
            for file, split in self._listed
        )
        return tuple(image for image in labelled if image.lines)

    @cached_property
    def _starts(self) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        return np.concatenate(
            [[0], np.cumsum([len(image.lines) for image in self._images])]
        ).astype(np.int64)


def label_location(image: str) -> str:
    """Return where the labels of an image are.

    >>> label_location("data/images/val/a.jpg"), label_location("data/b.png")
    ('data/labels/val/a.txt', 'data/b.txt')
    """
    before, found, after = image.replace("\\", "/").rpartition("/images/")
    place = f"{before}/labels/{after}" if found else image
    return posixpath.splitext(place)[0] + ".txt"


def parse_line(line: str) -> tuple[int, Corners | None]:
    """Return class and left, top, width, height (shares of the image) of a line, None where it cannot be read.

    >>> parse_line("2 0.5 0.5 0.2 0.4")
    (2, (0.4, 0.3, 0.2, 0.4))
    """
    code, *words = line.split()
    try:
        numbers = [float(word) for word in words]
        number = int(float(code))
    except (ValueError, OverflowError):
        return -1, None
    if len(numbers) == _BOX_NUMBERS:
        across, down, wide, high = numbers
        return number, (across - wide / 2, down - high / 2, wide, high)
    if len(numbers) < _MIN_POLYGON_NUMBERS or len(numbers) % 2:
        return number, None
    left, top = min(numbers[::2]), min(numbers[1::2])
    return number, (left, top, max(numbers[::2]) - left, max(numbers[1::2]) - top)


def _label_lines(image: str) -> tuple[str, ...]:
    try:
        text = read_anew(label_location(image)).data.decode("utf-8-sig", "replace")
    except UnreadableLocationError as error:
        if error.reason == "missing-file":
            return ()
        raise
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def _images_at(location: str) -> list[ListedFile]:
    if is_folder(location):
        return [file for file in list_files(location) if is_image_name(file.relative)]
    beside = parent_location(location)
    names = [
        line.strip()
        for line in read_anew(location).data.decode("utf-8-sig", "replace").splitlines()
        if line.strip()
    ]
    return [
        _fact(join_location(beside, name.removeprefix("./")))
        for name in names
        if is_image_name(name)
    ]


def _fact(location: str) -> ListedFile:
    try:
        return file_facts(location)
    except UnreadableLocationError:
        # It is listed all the same, so that its boxes show up in the quarantine.
        return ListedFile(
            location=location, relative=location.rpartition("/")[2], size=-1, stamp=""
        )


def _name(file: ListedFile, root: str) -> str:
    """Return an image's path below the root of the data set, with `/` between parts."""
    place, top = (
        posixpath.normpath(file.location.replace("\\", "/")),
        posixpath.normpath(root.replace("\\", "/")),
    )
    return place.removeprefix(f"{top}/")
