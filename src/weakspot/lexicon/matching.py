"""Whether words of different sources mean the same: a name's, a column's, a caption's."""

from collections.abc import Iterable
from functools import lru_cache

from weakspot.lexicon.captions import content_words
from weakspot.lexicon.wordnet import are_synonyms, lemma

_SUFFIXES = ("y", "ed", "en")
_SHORTEST_STEM = 3


@lru_cache(maxsize=65_536)
def mean_the_same(first: str, second: str) -> bool:
    """Return whether two words are one, are synonyms, or one is made from the other, as `grassy` is from `grass`.

    >>> [mean_the_same("grass", word) for word in ("grassy", "Grass", "glass")]
    [True, True, False]
    """
    one, two = lemma(first), lemma(second)
    return are_synonyms(one, two) or two in _derive(one) or one in _derive(two)


def _derive(word: str) -> frozenset[str]:
    """Return what could be made from a noun; it may be a plural that has a meaning of its own, as `stripes` has."""
    single = word.removesuffix("s")
    stems = {word, single, single.removesuffix("e"), word + word[-1:]}
    return frozenset(
        stem + suffix for stem in stems for suffix in _SUFFIXES if len(stem) >= _SHORTEST_STEM
    )


@lru_cache(maxsize=65_536)
def phrase_words(phrase: str) -> frozenset[str]:
    """Return the words of a phrase that carry meaning, `background` and the like among them, as lemmas."""
    return frozenset(
        lemma(word) for word in content_words(phrase.replace("_", " "), with_carriers=True)
    )


def covers(words: Iterable[str], wanted: Iterable[str]) -> bool:
    """Return whether every wanted word has its like among words; never if nothing is wanted."""
    among, needed = tuple(words), tuple(wanted)
    return bool(needed) and all(any(mean_the_same(one, need) for one in among) for need in needed)


def same_contrast(first: str, second: str) -> bool:
    """Return whether two contrasts say the same, word for word or by synonyms.

    >>> same_contrast("on the grass", "on a grassy background"), same_contrast("green", "green, blurry")
    (True, False)
    """
    one, two = content_words(first), content_words(second)
    return covers(one, two) and covers(two, one)
