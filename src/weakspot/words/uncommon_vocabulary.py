"""What things are rarely seen with, by axis: backgrounds, colours, sizes, poses and more."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from weakspot.words.captions import Caption, WordedAttribute, ancestry, counted, noun_of


@dataclass(frozen=True, kw_only=True)
class Axis(WordedAttribute):
    """One kind of attribute, whose values stand for every class; `{class}` in its question stands for the class with its article.

    Args:
        example: a value, to show the form that is wanted.
        by_ancestor: values for classes that are a kind of something, before the others.
    """

    example: str
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
        if self.slot == "adjective":
            return Caption(noun=noun, adjective=value, added=(("adjective", value),))
        if self.slot == "look":
            return Caption(noun=noun, look=value, added=(("look", value),))
        return Caption(noun=noun, place=value, added=(("place", value),))


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
            values={value: (value,) for value in entry["values"]},
            by_ancestor={
                above: tuple(values) for above, values in entry.get("by_ancestor", {}).items()
            },
        )
        for name, entry in content.items()
    }
