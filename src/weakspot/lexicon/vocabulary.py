"""The words that captions are made of.

The built-in attributes: what can be said of almost any image, and in which words.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Literal, cast

from weakspot.lexicon.wordnet import ancestors, lemma


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

    def joined(self, *others: "ClassWords") -> "ClassWords":
        """Return these words and those of others, each once, in order."""
        together = (self, *others)
        return ClassWords(
            adjectives=_each_once(words.adjectives for words in together),
            nouns=_each_once(words.nouns for words in together),
            places=_each_once(words.places for words in together),
        )


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """All built-in words.

    Args:
        adjectives: stand before the noun.
        looks: what is said of the image itself, by the word shown to people.
        places: stand after the noun, with their preposition.
        singular: nouns that only look like plurals.
        plural: nouns that do not look like plurals.
        mass: nouns that are not counted.
        by_ancestor: words for every class below an ancestor, by ancestor.
    """

    adjectives: tuple[str, ...]
    looks: Mapping[str, str] = field(default_factory=dict)
    places: tuple[str, ...] = ()
    singular: frozenset[str] = frozenset()
    plural: frozenset[str] = frozenset()
    mass: frozenset[str] = frozenset()
    by_ancestor: Mapping[str, ClassWords] = field(default_factory=dict)


@cache
def built_in_vocabulary() -> Vocabulary:
    content = tomllib.loads(
        files(__package__).joinpath("vocabulary.toml").read_text(encoding="utf-8")
    )
    by_ancestor: dict[str, ClassWords] = {}
    for thing in content["things"].values():
        words = ClassWords(
            adjectives=tuple(thing.get("adjectives", ())), places=tuple(thing.get("places", ()))
        )
        for ancestor in thing["ancestors"]:
            by_ancestor[ancestor] = by_ancestor.get(ancestor, ClassWords()).joined(words)
    return Vocabulary(
        adjectives=tuple(word for group in content["adjectives"].values() for word in group),
        looks=dict(content["looks"]),
        places=tuple(word for group in content["places"].values() for word in group),
        singular=frozenset(content["nouns"]["singular"]),
        plural=frozenset(content["nouns"]["plural"]),
        mass=frozenset(content["nouns"]["mass"]),
        by_ancestor=by_ancestor,
    )


@cache
def _hard_words() -> frozenset[str]:
    content = tomllib.loads(
        files(__package__).joinpath("vocabulary.toml").read_text(encoding="utf-8")
    )
    return frozenset(
        word for group in ("material", "state") for word in content["adjectives"][group]
    )


def hard_to_tell(words: str) -> bool:
    """Return whether the embedding of a whole image tells badly what words say: backgrounds, materials, states.

    >>> hard_to_tell("on a green background"), hard_to_tell("metal"), hard_to_tell("green")
    (True, True, False)
    """
    return words.endswith(" background") or words in _hard_words()


@cache
def ancestry(noun: str) -> tuple[str, ...]:
    """Return a class itself and what it is a kind of, nearest first.

    >>> ancestry("Oranges")[0], "food" in ancestry("satsuma"), "person" in ancestry("cat")
    ('orange', True, False)
    """
    above = ancestors(noun)
    # WordNet puts many a tree before its fruit.
    return (lemma(noun), *(ancestors(noun, n_senses=3) if "plant" in above else above))


def words_of_ancestors(noun: str, by_ancestor: Mapping[str, ClassWords]) -> ClassWords:
    """Return the words that are meant for a class or for something it is a kind of, nearest first."""
    return ClassWords().joined(*(by_ancestor[one] for one in ancestry(noun) if one in by_ancestor))


def _each_once(groups: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for group in groups for word in group))


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
    content = tomllib.loads(
        files(__package__).joinpath("attributes.toml").read_text(encoding="utf-8")
    )
    return tuple(
        WordedAttribute(
            name=name,
            question=entry["question"],
            slot=cast(AttributeSlot, entry["slot"]),
            values=tuple(
                WordedValue(value=value, wordings=tuple(words))
                for value, words in entry["values"].items()
            ),
            also=tuple(entry.get("also", ())),
        )
        for name, entry in content.items()
    )
