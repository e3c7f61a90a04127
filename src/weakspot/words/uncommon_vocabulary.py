"""What things are rarely seen with, by axis: backgrounds, colours, sizes, poses and more."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Literal

from weakspot.words.captions import Caption, ancestry, counted, noun_of

Slot = Literal["adjective", "place", "look"]


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One kind of attribute.

    Args:
        name: what it is called in settings.
        slot: where a value stands in a caption.
        question: what to ask a language model; `{class}` stands for the class with its article.
        example: a value, to show the form that is wanted.
        values: for every class.
        by_ancestor: for classes that are a kind of something, before the others.
    """

    name: str
    slot: Slot
    question: str
    example: str
    values: tuple[str, ...]
    by_ancestor: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def values_for(self, class_name: str | None, *, most: int) -> tuple[str, ...]:
        """Return built-in values for a class, those of its nearest listed ancestor first; None for no class in particular."""
        above = ancestry(noun_of(class_name)) if class_name else ()
        own = next((self.by_ancestor[name] for name in above if name in self.by_ancestor), ())
        return tuple(dict.fromkeys((*own, *self.values)))[:most]

    def question_for(self, class_name: str) -> str:
        noun = noun_of(class_name)
        return self.question.replace("{class}", counted(noun, noun))

    def caption(self, noun: str | None, value: str) -> Caption:
        added = ((self.slot, value),)
        if self.slot == "adjective":
            return Caption(noun=noun, adjective=value, added=added)
        if self.slot == "look":
            return Caption(noun=noun, look=value, added=added)
        return Caption(noun=noun, place=value, added=added)


@cache
def uncommon_axes() -> Mapping[str, Axis]:
    content = tomllib.loads(
        files(__package__).joinpath("uncommon.toml").read_text(encoding="utf-8")
    )
    return {
        name: Axis(
            name=name,
            slot=entry["slot"],
            question=entry["question"],
            example=entry["example"],
            values=tuple(entry["values"]),
            by_ancestor={
                above: tuple(values) for above, values in entry.get("by_ancestor", {}).items()
            },
        )
        for name, entry in content.items()
    }
