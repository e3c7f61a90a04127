"""JSON that fits a schema as a regular expression, so that a language model can write nothing else.

Written are objects with all the properties that the schema declares, in its order, or with free keys; arrays; strings without
escapes; numbers; literals. Lengths are bounded, so that every text ends.
"""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from weakspot.models.loading import require_library

MAX_LETTERS = 120
MAX_KEY_LETTERS = 40
MAX_ITEMS = 32
_ANY_TEXT: Mapping[str, Any] = {"type": "string"}
_FIRST_LETTER = r'[^"\\\p{C}\p{Z}\uFFFD]'
_LETTER = f"(?:{_FIRST_LETTER}| )"
_WHOLE_NUMBER = "-?(?:0|[1-9][0-9]{0,10})"
_KINDS = {
    "boolean": "(?:true|false)",
    "null": "null",
    "integer": _WHOLE_NUMBER,
    "number": rf"{_WHOLE_NUMBER}(?:\.[0-9]{{1,6}})?",
}
_NEVER = "(?!)"


def pattern_of(schema: Mapping[str, Any]) -> str:
    r"""Return a regular expression of the values that fit a schema.

    >>> print(pattern_of({"type": "array", "items": {"type": "null"}, "minItems": 1, "maxItems": 3}))
    \[null(?:, ?null){0,2}\]
    """
    if "enum" in schema or "const" in schema:
        allowed = schema.get("enum", [schema.get("const")])
        return f"(?:{'|'.join(_literal(value) for value in allowed)})"
    kind = _kind(schema)
    if kind == "string":
        least = int(schema.get("minLength", 1))
        return _text(least, max(least, int(schema.get("maxLength", MAX_LETTERS))))
    if kind == "array":
        items = schema.get("items")
        entry = pattern_of(items if isinstance(items, Mapping) else _ANY_TEXT)
        return _repeated(entry, r"\[", r"\]", schema, ("minItems", "maxItems"))
    return _object(schema) if kind == "object" else _KINDS.get(kind, _NEVER)


def is_whole(pattern: str, text: str) -> bool:
    match = _match(pattern, text)
    return match is not None and not match.partial


def may_follow(pattern: str, text: str, piece: str, *, hurry: int = 0) -> bool:
    """Return whether a piece can follow a text that can still come to fit a pattern.

    Args:
        pattern: what the whole must fit.
        text: what is written.
        piece: what is written next.
        hurry: 1: nothing is begun that can be left out; 2: strings end at once, too.

    >>> numbers = pattern_of({"type": "array", "items": {"type": "integer"}})
    >>> may_follow(numbers, "[1, 20", "]"), may_follow(numbers, "[1, 20", "x")
    (True, False)
    """
    if _match(pattern, text + piece) is None:
        return False
    before = (text + piece[:place] for place in range(len(piece) if hurry else 0))
    return all(
        _ending(pattern, written, hurry) in ("", letter)
        for written, letter in zip(before, piece, strict=False)
    )


def _ending(pattern: str, text: str, hurry: int) -> str:
    """Return the letter that ends what was begun last, empty if it cannot end yet."""
    is_inside_string = text.count('"') % 2 == 1
    endings = ('"' if hurry > 1 else "") if is_inside_string else "]}"
    return next((end for end in endings if _match(pattern, text + end) is not None), "")


def _match(pattern: str, text: str) -> Any:
    return _compiled(pattern).fullmatch(text, partial=True)


@cache
def _compiled(pattern: str) -> Any:
    return require_library("regex", extra="hub", purpose="JSON of hub models").compile(pattern)


def _kind(schema: Mapping[str, Any]) -> str:
    is_object = "properties" in schema or "additionalProperties" in schema
    kind = schema.get("type", "object" if is_object else "string")
    return str(kind[0]) if isinstance(kind, list | tuple) and kind else str(kind)


def _object(schema: Mapping[str, Any]) -> str:
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and properties:
        entries = (f"{_literal(name)}: ?{pattern_of(value)}" for name, value in properties.items())
        return rf"\{{{', ?'.join(entries)}\}}"
    values = schema.get("additionalProperties")
    value = pattern_of(values if isinstance(values, Mapping) else _ANY_TEXT)
    entry = f"{_text(1, MAX_KEY_LETTERS)}: ?{value}"
    return _repeated(entry, r"\{", r"\}", schema, ("minProperties", "maxProperties"))


def _repeated(
    entry: str, opening: str, closing: str, schema: Mapping[str, Any], bounds: tuple[str, str]
) -> str:
    least = int(schema.get(bounds[0], 0))
    most = max(least, int(schema.get(bounds[1], MAX_ITEMS)))
    if most == 0:
        return opening + closing
    entries = f"{entry}(?:, ?{entry}){{{max(least, 1) - 1},{most - 1}}}"
    return f"{opening}{entries if least else f'(?:{entries})?'}{closing}"


def _text(least: int, most: int) -> str:
    if most == 0:
        return '""'
    letters = f"{_FIRST_LETTER}{_LETTER}{{{max(least, 1) - 1},{most - 1}}}"
    return f'"{letters if least else f"(?:{letters})?"}"'


def _literal(value: Any) -> str:
    written = json.dumps(value, ensure_ascii=False)
    return "".join(letter if letter.isalnum() else f"\\{letter}" for letter in written)
