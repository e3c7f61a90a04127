"""Which words are rivals for one meaning, and which say more than others: sketch says black and white too."""

from functools import lru_cache

from weakspot.lexicon.matching import same_contrast
from weakspot.lexicon.wordnet import ancestors, is_known

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
