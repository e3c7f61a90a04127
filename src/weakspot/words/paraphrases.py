"""What is said of a class beside naming it: ways to say the same, titles in plain English, classes named in passing."""

import re
from collections.abc import Sequence
from functools import lru_cache

from weakspot.core.errors import ConfigError
from weakspot.words.captions import Caption, content_words, counted, counting_of, noun_of
from weakspot.words.wordnet import is_known, lemma

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
