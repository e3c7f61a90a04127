"""JSON that fits a schema, letter by letter: which letters may come next, so that a language model can write nothing else.

A state is a stack of what is still expected, innermost last; it is never changed, so that many continuations can be tried from it.
Written are objects with all the properties that the schema declares, in its order, or with free keys; arrays; strings without
escapes; numbers; literals. Lengths are bounded, so that every text ends.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

MAX_LETTERS = 120
MAX_KEY_LETTERS = 40
MAX_ITEMS = 32
MAX_DIGITS = 12
_ANY_TEXT: Mapping[str, Any] = {"type": "string"}
_LITERALS = {"boolean": ("true", "false"), "null": ("null",)}


@dataclass(frozen=True, kw_only=True)
class Expected(ABC):
    """One thing that is still to be written."""

    @abstractmethod
    def take(self, letter: str) -> "tuple[Expected, ...] | None":
        """Return what is expected in its place after a letter, or None if the letter cannot stand here."""

    @property
    def may_end(self) -> bool:
        """Whether this may be complete already, so that the letter belongs to what comes after."""
        return False


State = tuple[Expected, ...]


@dataclass(frozen=True, kw_only=True)
class OneOf(Expected):
    """The rest of one of several texts."""

    rests: tuple[str, ...]

    @property
    def may_end(self) -> bool:
        return "" in self.rests

    def take(self, letter: str) -> State | None:
        left = tuple(rest[1:] for rest in self.rests if rest.startswith(letter))
        if not left:
            return None
        return () if left == ("",) else (OneOf(rests=left),)


@dataclass(frozen=True, kw_only=True)
class MaySpace(Expected):
    """A space that may be left out."""

    @property
    def may_end(self) -> bool:
        return True

    def take(self, letter: str) -> State | None:
        return () if letter == " " else None


@dataclass(frozen=True, kw_only=True)
class Text(Expected):
    """The inside of a string."""

    least: int = 1
    most: int = MAX_LETTERS
    n_letters: int = 0

    def take(self, letter: str) -> State | None:
        if letter == '"':
            return () if self.n_letters >= self.least else None
        is_blank_start = self.n_letters == 0 and letter == " "
        if (
            letter == "\\"
            or not letter.isprintable()
            or letter == "\ufffd"
            or is_blank_start
            or self.n_letters >= self.most
        ):
            return None
        return (replace(self, n_letters=self.n_letters + 1),)


@dataclass(frozen=True, kw_only=True)
class Number(Expected):
    """A number, as far as it is written."""

    is_whole: bool
    written: str = ""

    @property
    def may_end(self) -> bool:
        return self.written[-1:].isdigit()

    def take(self, letter: str) -> State | None:
        has_digits = self.written.lstrip("-") != ""
        is_zero = self.written.lstrip("-") == "0"
        fits = (
            (letter == "-" and not self.written)
            or (letter in "0123456789" and not is_zero)
            or (letter == "." and has_digits and not self.is_whole and "." not in self.written)
        )
        return (
            (replace(self, written=self.written + letter),)
            if fits and len(self.written) < MAX_DIGITS
            else None
        )


@dataclass(frozen=True, kw_only=True)
class Items(Expected):
    """The rest of an array, or of an object with free keys, after so many entries."""

    schema: Mapping[str, Any]
    close: str
    least: int
    most: int
    n_entries: int = 0

    def take(self, letter: str) -> State | None:
        if letter == self.close:
            return () if self.n_entries >= self.least else None
        if self.n_entries >= self.most:
            return None
        after = replace(self, n_entries=self.n_entries + 1)
        entry = self._entry()
        if self.n_entries:
            return (after, *entry, MaySpace()) if letter == "," else None
        begun = advance(entry, letter)
        return None if begun is None else (after, *begun)

    def _entry(self) -> State:
        value = expected_value(self.schema)
        if self.close == "]":
            return (value,)
        return (
            value,
            MaySpace(),
            OneOf(rests=(":",)),
            Text(most=MAX_KEY_LETTERS),
            OneOf(rests=('"',)),
        )


@dataclass(frozen=True, kw_only=True)
class Value(Expected):
    """A value of which nothing is written yet: text, number, array or object."""

    schema: Mapping[str, Any]

    def take(self, letter: str) -> State | None:
        kind, schema = _kind(self.schema), self.schema
        if kind in ("number", "integer"):
            return Number(is_whole=kind == "integer").take(letter)
        if kind == "array" and letter == "[":
            items = schema.get("items")
            least, most = int(schema.get("minItems", 0)), int(schema.get("maxItems", MAX_ITEMS))
            return (
                Items(
                    schema=items if isinstance(items, Mapping) else _ANY_TEXT,
                    close="]",
                    least=least,
                    most=max(least, most),
                ),
            )
        if kind == "object" and letter == "{":
            return _object(schema)
        if kind == "string" and letter == '"':
            least = int(schema.get("minLength", 1))
            return (Text(least=least, most=max(least, int(schema.get("maxLength", MAX_LETTERS)))),)
        return None


def expected_value(schema: Mapping[str, Any]) -> Expected:
    if "enum" in schema or "const" in schema:
        allowed = schema.get("enum", [schema.get("const")])
        return OneOf(rests=tuple(json.dumps(value, ensure_ascii=False) for value in allowed))
    kind = _kind(schema)
    return OneOf(rests=_LITERALS[kind]) if kind in _LITERALS else Value(schema=schema)


def start(schema: Mapping[str, Any]) -> State:
    return (expected_value(schema),)


def advance(state: State, text: str, *, hurry: int = 0) -> State | None:
    """Return the state after further text, or None if the text cannot follow.

    Args:
        state: what is expected.
        text: what is written next.
        hurry: 1: nothing is begun that can be left out; 2: strings end at once, too.

    >>> after = advance(start({"type": "array", "items": {"type": "integer"}}), "[1, 20")
    >>> advance(after, "]"), advance(after, "x")
    ((), None)
    """
    now: State | None = state
    for letter in text:
        now = _after_letter(now, letter, hurry=hurry) if now else None
        if now is None:
            return None
    return now


def is_complete(state: State) -> bool:
    return all(one.may_end for one in state)


def _after_letter(state: State, letter: str, *, hurry: int) -> State | None:
    rest = state
    while rest:
        *outer, innermost = rest
        taken = None if _is_too_much(innermost, letter, hurry) else innermost.take(letter)
        if taken is not None:
            return (*outer, *taken)
        if not innermost.may_end:
            return None
        rest = tuple(outer)
    return None


def _is_too_much(expected: Expected, letter: str, hurry: int) -> bool:
    if isinstance(expected, Items):
        return hurry >= 1 and expected.n_entries >= expected.least and letter != expected.close
    return (
        isinstance(expected, Text)
        and hurry > 1
        and expected.n_letters >= expected.least
        and letter != '"'
    )


def _kind(schema: Mapping[str, Any]) -> str:
    kind = schema.get(
        "type", "object" if "properties" in schema or "additionalProperties" in schema else "string"
    )
    return str(kind[0]) if isinstance(kind, list | tuple) and kind else str(kind)


def _array(schema: Mapping[str, Any]) -> Items:
    inner = schema.get("items")
    least = int(schema.get("minItems", 0))
    most = max(least, int(schema.get("maxItems", MAX_ITEMS)))
    return Items(
        schema=inner if isinstance(inner, Mapping) else _ANY_TEXT, close="]", least=least, most=most
    )


def _object(schema: Mapping[str, Any]) -> State:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not properties:
        free = schema.get("additionalProperties")
        inner = free if isinstance(free, Mapping) else _ANY_TEXT
        least = int(schema.get("minProperties", 0))
        return (
            Items(
                schema=inner,
                close="}",
                least=least,
                most=max(least, int(schema.get("maxProperties", MAX_ITEMS))),
            ),
        )
    expected: list[Expected] = []
    for place, (name, inner) in enumerate(properties.items()):
        if place:
            expected += [OneOf(rests=(",",)), MaySpace()]
        expected += [
            OneOf(rests=(json.dumps(name, ensure_ascii=False) + ":",)),
            MaySpace(),
            expected_value(inner),
        ]
    return tuple(reversed([*expected, OneOf(rests=("}",))]))
