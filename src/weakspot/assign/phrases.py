"""Values of attributes as phrases that an encoder can compare with images, in two halves that share few words."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import cycle, islice

from weakspot.lexicon.captions import Caption, counted, noun_of
from weakspot.lexicon.vocabulary import AttributeSlot

NO_NOUN: tuple[str | None, ...] = (None,)
_WORDS = re.compile(r"[^\W\d_]{2,}( [^\W\d_]+)*")


def class_nouns(class_names: Sequence[str], *, most: int) -> tuple[str, ...]:
    """Return the nouns of at most so many classes, spread over all of them; names that are no words, such as codes, are left out.

    >>> class_nouns(["Golden_Retriever", "n02099712", "tabby", "school-bus"], most=2)
    ('golden retriever', 'tabby')
    """
    nouns = [noun for noun in map(noun_of, class_names) if _WORDS.fullmatch(noun)]
    n_taken = min(most, len(nouns))
    return tuple(nouns[place * len(nouns) // n_taken] for place in range(n_taken))


def worded_phrases(
    slot: AttributeSlot, wordings: Sequence[str], nouns: Sequence[str | None] = NO_NOUN
) -> tuple[str, ...]:
    """Return the phrases of a value, from the first and the second half of its wordings in turn.

    Args:
        slot: where a wording stands in a caption.
        wordings: at least one; with one only, the halves differ in the words around it.
        nouns: what the captions are of; None for anything.

    >>> worded_phrases("place", ("on a beach", "on the sand"))
    ('a photo on a beach', 'a picture of an object on the sand')
    """
    if slot == "sentence":
        return _in_turn(wordings[::2], wordings[1::2] or wordings)
    plain = [Caption(noun=noun) for noun in nouns]
    other = [Caption(noun=noun or "object", look="picture") for noun in nouns]
    first = [_fill(caption, slot, words) for words in wordings[::2] for caption in plain]
    second = [
        _fill(caption, slot, words) for words in wordings[1::2] or wordings for caption in other
    ]
    return _in_turn(first, second)


def free_phrases(name: str, value: str) -> tuple[str, ...]:
    """Return the phrases of a value of which only the word is known.

    >>> free_phrases("hair colour", "auburn")
    ('a photo with an auburn hair colour', 'a picture in which the hair colour is auburn')
    """
    return (
        f"a photo with {counted(f'{value} {name}', name)}",
        f"a picture in which the {name} is {value}",
    )


def yes_phrases(name: str) -> tuple[str, ...]:
    """Return phrases for samples that have something."""
    return f"a photo with {name}", f"a picture that shows {name}"


def no_phrases() -> tuple[str, ...]:
    """Return phrases for samples that lack it: they say nothing of it, because encoders hardly read the word "without"."""
    return "a photo", "a picture of something"


def _fill(caption: Caption, slot: AttributeSlot, words: str) -> str:
    if slot == "adjective":
        return replace(caption, adjective=words).phrase
    return (
        replace(caption, look=words).phrase
        if slot == "look"
        else replace(caption, place=words).phrase
    )


def _in_turn(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    n_pairs = max(len(first), len(second))
    return tuple(
        _flat(zip(islice(cycle(first), n_pairs), islice(cycle(second), n_pairs), strict=True))
    )


def _flat(pairs: Iterator[tuple[str, str]]) -> Iterator[str]:
    for pair in pairs:
        yield from pair
