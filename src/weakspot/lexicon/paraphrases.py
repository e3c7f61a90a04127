"""What a person's phrase says of a class beside naming it, and the ways to say the same."""

import re

from weakspot.lexicon.captions import content_words, counted, noun_of
from weakspot.lexicon.wordnet import lemma

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
