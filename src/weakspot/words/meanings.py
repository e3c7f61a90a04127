"""Whether words mean the same, are rivals for one meaning or say more than others; and other ways to say the same of a class."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from weakspot.core.errors import ConfigError
from weakspot.words.captions import Caption, content_words, counted, counting_of, noun_of
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


_LINKS = re.compile(r"\b(?:(?:that|which|who)\s+(?:is|are|looks?|have|has)|(?:is|are))\b")
_ARTICLE = re.compile(r"^(?:an?|the|some)\s+")
_CARRIER = re.compile(r"^(?:(?:an?|the)\s+)?(?:photo|photograph|picture|image)s?\s+of\s+")
# What stands after the noun: "apple on a shelf", "dog lying down".
_AFTER_NOUN = re.compile(
    r"^(?:in|on|at|with|without|under|behind|among|near|from|by|of|inside|outside|next|between|over|above|below|beside|against"
    r"|through|during|facing|seen|that|which|\w+ing)\b"
)


def noun_forms(noun: str) -> tuple[str, ...]:
    """Return a class name in the singular and the plural, longest first.

    >>> noun_forms("apple")
    ('apples', 'apple')
    >>> noun_forms("berries")
    ('berries', 'berry')
    """
    words = noun_of(noun).lower()
    if not words:
        return ()
    *before, last = words.split(" ")
    one = lemma(last)
    many = f"{one[:-1]}ies" if re.search(r"[^aeiou]y$", one) else f"{one}s"
    many = f"{one}es" if re.search(r"(?:s|x|ch|sh)$", one) else many
    forms = {" ".join([*before, form]) for form in (last, one, many)}
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


def addition_of(phrase: str, noun: str) -> str:
    """Return what a phrase says beside the name of the class; the phrase itself if that is all of it.

    >>> [addition_of(phrase, "Apple") for phrase in ("green apples", "an apple that is green", "a photo of a green apple", "apples")]
    ['green', 'green', 'green', 'apples']
    """
    whole = _CARRIER.sub("", " ".join(phrase.split()))
    rest = _LINKS.sub(" ", whole)
    for form in noun_forms(noun):
        rest = re.sub(rf"\b(?:(?:an?|the)\s+)?{re.escape(form)}\b", " ", rest, flags=re.IGNORECASE)
    rest = _ARTICLE.sub("", " ".join(rest.split()).strip(" ,"))
    return rest if content_words(rest, with_carriers=True) else _ARTICLE.sub("", whole)


def names_class(phrase: str, noun: str) -> bool:
    """Return whether a phrase names the class itself, in the singular or the plural.

    >>> names_class("Green apples", "apple"), names_class("pineapples", "apple")
    (True, False)
    """
    return any(re.search(rf"\b{re.escape(form)}\b", phrase.lower()) for form in noun_forms(noun))


def stands_behind(addition: str) -> bool:
    """Return whether words stand behind a noun.

    >>> stands_behind("on a shelf"), stands_behind("green")
    (True, False)
    """
    return _AFTER_NOUN.match(addition.lower()) is not None


def said_of(addition: str, noun: str) -> str:
    """Return a noun with something said of it, in English order.

    >>> said_of("green", "apple"), said_of("on a shelf", "apple"), said_of("green", "")
    ('a green apple', 'an apple on a shelf', 'green')
    """
    if not noun:
        return addition
    if stands_behind(addition):
        return f"{counted(noun, noun)} {addition}"
    return counted(f"{addition} {noun}", noun)


def wordings(phrase: str, noun: str) -> tuple[str, ...]:
    """Return the ways to say a phrase of a class: alone, and of the class in the singular.

    Phrases that differ in the class noun only have the same wordings, so they are one hypothesis.

    >>> wordings("apples that are green", "apple"), wordings("on a shelf", "")
    (('green', 'a green apple'), ('on a shelf',))
    """
    addition = addition_of(phrase, noun)
    forms = noun_forms(noun)
    if not forms or addition.lower() in forms:
        return (addition,)
    return addition, said_of(addition, forms[-1])


def parts_of(phrase: str, noun: str) -> tuple[str, ...]:
    """Return the single words of what a phrase adds to a class, if there are several.

    >>> parts_of("small green apples in a box", "apple")
    ('small', 'green', 'box')
    >>> parts_of("green apples", "apple")
    ()
    """
    words = tuple(dict.fromkeys(content_words(addition_of(phrase, noun))))
    return words if len(words) > 1 else ()


MAX_LISTED = 12


def class_in(phrases: Sequence[str], class_names: Sequence[str]) -> str:
    """Return the one class that phrases name, in the singular or the plural; with one class only, that one.

    Raises:
        ConfigError: if they name none, or several.

    >>> class_in(["green apples"], ["apple", "pear"])
    'apple'
    """
    if len(class_names) == 1:
        return class_names[0]
    said = f" {' '.join(_words(phrase) for phrase in phrases)} "
    named = [name for name in class_names if any(f" {form} " in said for form in _forms(name))]
    # "polar bear" names a bear, too: the longest name is meant.
    meant = [
        name
        for name in named
        if not any(name != other and _words(name) in _words(other) for other in named)
    ]
    if len(meant) == 1:
        return meant[0]
    listed = ", ".join(class_names[:MAX_LISTED]) + (" ..." if len(class_names) > MAX_LISTED else "")
    raise ConfigError(
        f"These words name {'no class' if not meant else 'several classes: ' + ', '.join(meant)}.",
        given=", ".join(phrases),
        fix=f"Say which class they are about: --class NAME, one of {listed}.",
    )


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower().replace("_", " ")))


def _forms(name: str) -> tuple[str, ...]:
    words = _words(name)
    return (words, *noun_forms(words)) if words else ()


_SINGULAR_WORDS = ((re.compile(r"\bon it\b"), "on them"), (re.compile(r"\bits\b"), "their"))
_JOINING = frozenset({"and", "or", "very", "not"})
_HISSING = re.compile(r"(?:s|x|z|ch|sh)$")
_CONSONANT_Y = re.compile(r"[^aeiou]y$")
_UNLIKE = {
    "man": "men", "woman": "women", "child": "children", "person": "people", "mouse": "mice", "goose": "geese", "foot": "feet",
    "tooth": "teeth", "ox": "oxen", "sheep": "sheep", "deer": "deer", "fish": "fish", "aircraft": "aircraft", "leaf": "leaves",
    "knife": "knives", "wolf": "wolves", "shelf": "shelves", "loaf": "loaves", "calf": "calves", "potato": "potatoes",
    "tomato": "tomatoes", "bus": "buses",
}  # fmt: skip


def plural(noun: str) -> str:
    """Return a noun in the plural; what is not counted, or is a plural already, stays.

    >>> [plural(noun) for noun in ("apple", "Granny Smith", "berry", "fox", "milk", "glasses", "policeman")]
    ['apples', 'Granny Smiths', 'berries', 'foxes', 'milk', 'glasses', 'policemen']
    """
    if counting_of(noun) != "one":
        return noun
    *before, last = noun.split(" ")
    return " ".join([*before, _many(last)])


def title_of(caption: Caption, class_name: str) -> str:
    """Return a caption as a title; empty if the class name is no English noun, so that a sentence with it would read badly.

    >>> title_of(Caption(noun="apple", adjective="green"), "apple"), title_of(Caption(noun="car", place="with text on it"), "car")
    ('green apples', 'cars with text on them')
    >>> title_of(Caption(noun="dog", look="pencil sketch"), "dog"), title_of(Caption(noun="poodle"), "dog")
    ('pencil sketches of dogs', 'poodles (dog)')
    >>> title_of(Caption(noun="n01440764", adjective="green"), "n01440764")
    ''
    """
    noun = caption.noun
    if noun is None or not is_noun(class_name):
        return ""
    words = plural(noun) if not caption.adjective else f"{caption.adjective} {plural(noun)}"
    if noun != noun_of(class_name) and not noun.endswith(f" {noun_of(class_name)}"):
        words = f"{words} ({noun_of(class_name)})"
    if caption.place:
        words = f"{words} {_of_several(caption.place)}"
    return f"{plural(caption.look)} of {words}" if caption.look else words


def title_of_words(words: str, class_name: str) -> str:
    """Return a person's words for images of a class as a title; empty if they do not stand before or behind its noun in English.

    >>> [title_of_words(words, "apple") for words in ("green", "in a crate", "small and green", "green apples on grass")]
    ['green apples', 'apples in a crate', 'small and green apples', 'green apples on grass']
    >>> title_of_words("camera tilt", "apple"), title_of_words("green", "n01440764")
    ('', '')
    """
    said = " ".join(words.split())
    if not is_noun(class_name):
        return ""
    if names_class(said, class_name):
        return said
    many = plural(noun_of(class_name))
    if stands_behind(said):
        return f"{many} {_of_several(said)}"
    parts = [part for part in re.split(r"[\s,]+", said.lower()) if part not in _JOINING]
    return f"{said} {many}" if parts and all(is_known(part, "adj") for part in parts) else ""


@lru_cache(maxsize=1024)
def is_noun(class_name: str) -> bool:
    """Return whether a class name is an English noun, judged by its last word.

    >>> is_noun("sports car"), is_noun("class3"), is_noun("Satsumas"), is_noun("grün")
    (True, False, True, False)
    """
    words = noun_of(class_name).lower().split(" ")
    is_spelt = all(word.isascii() and word.replace("'", "").isalpha() for word in words)
    return is_spelt and is_known(words[-1], "noun")


def _of_several(place: str) -> str:
    for one, many in _SINGULAR_WORDS:
        place = one.sub(many, place)
    return place


def _many(word: str) -> str:
    lower = word.lower()
    unlike = next(
        (
            one
            for one in _UNLIKE
            if lower == one or (lower.endswith(one) and one in ("man", "woman", "child", "fish"))
        ),
        None,
    )
    if unlike is not None:
        return word[: len(word) - len(unlike)] + _UNLIKE[unlike]
    if _CONSONANT_Y.search(lower):
        return f"{word[:-1]}ies"
    return f"{word}es" if _HISSING.search(lower) else f"{word}s"
