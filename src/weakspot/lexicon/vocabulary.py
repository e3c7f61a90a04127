"""The words that captions are made of."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

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
        looks: what is said of the picture itself, by the word shown to people.
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
    """Return the words of `vocabulary.toml`."""
    content = tomllib.loads(files(__package__).joinpath("vocabulary.toml").read_text(encoding="utf-8"))
    by_ancestor: dict[str, ClassWords] = {}
    for thing in content["things"].values():
        words = ClassWords(adjectives=tuple(thing.get("adjectives", ())), places=tuple(thing.get("places", ())))
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
