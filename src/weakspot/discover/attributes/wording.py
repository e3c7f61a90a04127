"""Attribute values as names of slices: the values are the words already."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

from weakspot.lexicon.captions import plain_caption
from weakspot.lexicon.vocabulary import built_in_attributes, built_in_vocabulary

YES, NO = frozenset({"yes", "true"}), frozenset({"no", "false"})
GRADES = frozenset(
    {"low", "medium", "high", "very low", "very high", "average", "middle", "normal"}
)
PREPOSITIONS = frozenset(
    {
        "in",
        "on",
        "at",
        "with",
        "without",
        "under",
        "behind",
        "near",
        "by",
        "outdoors",
        "indoors",
        "beside",
    }
)


@dataclass(frozen=True, kw_only=True)
class Wording:
    """One value in words.

    Args:
        shown: for people, for example `green` or `on the grass`.
        adjective: before the noun, if it can stand there.
        look: in the place of "photo", if it is about the image.
        after: behind the noun, with its preposition.
        apart: behind a comma, if nothing is known of how it is said.
    """

    shown: str
    adjective: str = ""
    look: str = ""
    after: str = ""
    apart: str = ""


def shared_values(values: Iterable[Sequence[str]]) -> frozenset[str]:
    """Return the values that occur in several columns: they do not speak for themselves."""
    counts = Counter(value.lower() for column in values for value in set(column))
    return frozenset(value for value, count in counts.items() if count > 1)


def worded(column: str, value: str, *, shared: frozenset[str] = frozenset()) -> Wording:
    """Return a value in words.

    >>> worded("colour", "green").shown, worded("glasses", "no").shown, worded("contrast", "low").shown, worded("count", "3").shown
    ('green', 'no glasses', 'low contrast', 'count: 3')
    """
    title, text = column.replace("_", " ").strip(), value.replace("_", " ").strip()
    plain = text.lower()
    if plain in YES or plain in NO:
        shown = title if plain in YES else f"no {title}"
        return Wording(shown=shown, after=f"with {title}" if plain in YES else f"without {title}")
    if plain in GRADES:
        shown = text if title.lower() in plain else f"{text} {title}"
        return Wording(shown=shown, after=f"with {shown}")
    if not any(letter.isalpha() for letter in text) or plain in shared:
        return Wording(shown=f"{title}: {text}", after=f"with {title} {text}")
    known = _built_in().get((title.lower(), plain))
    return known or _unlisted(text)


def name_words(
    class_name: str, wordings: Sequence[Wording], *, is_absent: bool = False
) -> tuple[str, str]:
    """Return phrase and contrast of a name.

    >>> name_words("apple", [worded("colour", "green"), worded("place", "on grass")])
    ('a photo of a green apple on grass', 'green, on grass')
    """
    plain = plain_caption(class_name, is_absent=is_absent)
    adjectives = [one.adjective for one in wordings if one.adjective]
    looks = [one.look for one in wordings if one.look]
    afters = [one.after for one in wordings if one.after]
    caption = replace(
        plain,
        adjective=" ".join(adjectives) or None,
        look=looks[0] if looks else None,
        place=" ".join(afters) or None,
    )
    phrase = ", ".join([caption.phrase, *looks[1:], *(one.apart for one in wordings if one.apart)])
    return phrase, ", ".join(one.shown for one in wordings)


def table_words(title: str, pairs: Sequence[tuple[str, str]]) -> str:
    """Return the name of a slice of samples without images: values as `weakspot ask` takes them.

    >>> table_words("apple", [("colour", "green"), ("size", "small")])
    'apple with colour = green and size = small'
    """
    return f"{title} with {' and '.join(f'{column} = {value}' for column, value in pairs)}"


def _unlisted(text: str) -> Wording:
    vocabulary = built_in_vocabulary()
    if text in vocabulary.adjectives:
        return Wording(shown=text, adjective=text)
    if text in vocabulary.looks:
        return Wording(shown=text, look=vocabulary.looks[text])
    if text.lower().split()[0] in PREPOSITIONS:
        return Wording(shown=text, after=text)
    return Wording(shown=text, apart=text)


@cache
def _built_in() -> dict[tuple[str, str], Wording]:
    found: dict[tuple[str, str], Wording] = {}
    for attribute in built_in_attributes():
        for value in attribute.values:
            first = value.wordings[0]
            starts_well = first.split()[0] in PREPOSITIONS
            wording = {
                "adjective": Wording(shown=value.value, adjective=first),
                "place": Wording(shown=first if starts_well else value.value, after=first),
                "look": Wording(shown=value.value, look=first),
            }.get(attribute.slot, Wording(shown=value.value, apart=value.value))
            found |= {
                (name, value.value.lower()): wording for name in (attribute.name, *attribute.also)
            }
    return found
