"""Whether words mean the same, are rivals for one meaning, or say more than others: sketch says black and white too."""

from collections.abc import Iterable
from functools import lru_cache

from weakspot.words.captions import content_words
from weakspot.words.wordnet import ancestors, are_synonyms, is_known, lemma

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


ANY_TEXT = "with text on it"
WRITING = (
    ANY_TEXT, "with a watermark", "with a label", "with a price tag", "with a date stamp", "with a sticker",
)  # fmt: skip
WEATHER = (
    "in fog", "in the rain", "in the snow", "in bright sunlight", "in the shade", "in winter", "in autumn", "among clouds",
)  # fmt: skip
FAMILIES: tuple[tuple[str, ...], ...] = (
    WRITING,
    ("drawing", "painting", "cartoon"),
    ("dark", "at night"),
    ("bright", "overexposed", "in bright sunlight"),
    ("yellow", "golden"),
    ("grey", "silver"),
    ("black and white", "grey"),
    ("close-up", "blurry"),
    ("on the grass", "on a grassy background", "in a field", "on a meadow"),
    ("in a forest", "on a tree"),
    ("in the water", "at sea", "on a river", "in a pond", "in a harbour", "on the shore", "on a beach"),
    ("on a beach", "on the sand"),
    ("on a street", "on a road", "in traffic"),
    # WordNet has these under young mammals only.
    ("cat", "kitten"),
    ("horse", "foal", "colt"),
    ("cow", "calf"),
    ("deer", "fawn"),
    ("pig", "piglet"),
    ("in a shop", "in a supermarket", "on a shop shelf", "at a market"),
)  # fmt: skip
SAYS_MORE: dict[str, tuple[str, ...]] = {
    "sketch": ("black and white", "bright", "overexposed", "drawing"),
    "overexposed": ("bright",),
    "at night": ("dark",),
    "pixelated": ("blurry",),
    "close-up": ("blurry",),
    "far away": ("blurry",),
}


def says_more(one: str, other: str) -> bool:
    """Return whether a word says all that another does.

    >>> says_more("sketch", "black and white"), says_more("black and white", "sketch")
    (True, False)
    """
    return other in SAYS_MORE.get(one, ())


@lru_cache(maxsize=65_536)
def are_near(one: str, other: str) -> bool:
    """Return whether two words are so near in meaning that either may stand for the other.

    >>> are_near("with a label", "with text on it"), are_near("boat", "ship"), are_near("dark", "bright")
    (True, True, False)
    >>> are_near("truck", "ship"), are_near("red", "blue")
    (False, False)
    """
    if same_contrast(one, other) or any(one in own and other in own for own in FAMILIES):
        return True
    if not (_is_thing(one) and _is_thing(other)):
        return False
    above, above_other = ancestors(one), ancestors(other)
    return one in above_other or other in above or above[:1] == above_other[:1]


def _is_thing(word: str) -> bool:
    return is_known(word, "noun") and not is_known(word, "adj")
