"""A class and what is said of it as a title in plain English: green apples, cars with text on them."""

import re
from functools import lru_cache

from weakspot.lexicon.captions import Caption, Counting, counting_of, noun_of
from weakspot.lexicon.paraphrases import names_class, stands_behind
from weakspot.lexicon.wordnet import is_known

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
    if counting_of(noun) is not Counting.ONE:
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
