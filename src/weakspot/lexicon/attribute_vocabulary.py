"""The built-in attributes: what can be said of almost any picture, and in which words."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, cast

AttributeSlot = Literal["adjective", "place", "look", "sentence"]


@dataclass(frozen=True, kw_only=True)
class WordedValue:
    """A value and its wordings, the first of which is the plainest."""

    value: str
    wordings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class WordedAttribute:
    """An attribute with values in words.

    Args:
        name: what it is.
        question: how a question answerer is asked for it.
        slot: where the wordings stand in a caption: before the noun, after it, in the place of "photo", or as the whole caption.
        values: each with at least two wordings.
        also: other names of the attribute.
    """

    name: str
    question: str
    slot: AttributeSlot
    values: tuple[WordedValue, ...]
    also: tuple[str, ...] = ()


@cache
def built_in_attributes() -> tuple[WordedAttribute, ...]:
    """Return the attributes of `attributes.toml`, in its order."""
    content = tomllib.loads(files(__package__).joinpath("attributes.toml").read_text(encoding="utf-8"))
    return tuple(
        WordedAttribute(
            name=name,
            question=entry["question"],
            slot=cast(AttributeSlot, entry["slot"]),
            values=tuple(WordedValue(value=value, wordings=tuple(words)) for value, words in entry["values"].items()),
            also=tuple(entry.get("also", ())),
        )
        for name, entry in content.items()
    )
