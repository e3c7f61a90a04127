"""The words that captions are made of."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, kw_only=True)
class ClassWords:
    """Words for one class, beside or instead of the built-in ones.

    Args:
        adjectives: stand before the noun.
        nouns: stand in the place of the class name, for example kinds of it.
        places: stand after the noun, with their preposition.
    """

    adjectives: tuple[str, ...] = ()
    nouns: tuple[str, ...] = ()
    places: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """All built-in words.

    Args:
        adjectives: stand before the noun.
        looks: what is said of the picture itself, by the word shown to people.
        places: stand after the noun, with their preposition.
        singular: nouns that only look like plurals.
        plural: nouns that do not look like plurals.
        mass: nouns that are not counted.
    """

    adjectives: tuple[str, ...]
    looks: Mapping[str, str] = field(default_factory=dict)
    places: tuple[str, ...] = ()
    singular: frozenset[str] = frozenset()
    plural: frozenset[str] = frozenset()
    mass: frozenset[str] = frozenset()


@cache
def built_in_vocabulary() -> Vocabulary:
    """Return the words of `vocabulary.toml`."""
    content = tomllib.loads(files(__package__).joinpath("vocabulary.toml").read_text(encoding="utf-8"))
    return Vocabulary(
        adjectives=tuple(word for group in content["adjectives"].values() for word in group),
        looks=dict(content["looks"]),
        places=tuple(word for group in content["places"].values() for word in group),
        singular=frozenset(content["nouns"]["singular"]),
        plural=frozenset(content["nouns"]["plural"]),
        mass=frozenset(content["nouns"]["mass"]),
    )
