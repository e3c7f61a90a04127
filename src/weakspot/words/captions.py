"""English captions with the right articles, and the built-in vocabulary they are made of, common and uncommon."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib.resources import files
from itertools import combinations, product
from typing import Literal, cast

from weakspot.words.wordnet import ancestors, lemma


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
        looks: what is said of the image itself, by the word shown to people.
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
    content = tomllib.loads(
        files(__package__).joinpath("vocabulary.toml").read_text(encoding="utf-8")
    )
    by_ancestor: dict[str, ClassWords] = {}
    for thing in content["things"].values():
        words = ClassWords(
            adjectives=tuple(thing.get("adjectives", ())), places=tuple(thing.get("places", ()))
        )
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
def _hard_words() -> frozenset[str]:
    content = tomllib.loads(
        files(__package__).joinpath("vocabulary.toml").read_text(encoding="utf-8")
    )
    return frozenset(
        word for group in ("material", "state") for word in content["adjectives"][group]
    )


def hard_to_tell(words: str) -> bool:
    """Return whether the embedding of a whole image tells badly what words say: backgrounds, materials, states.

    >>> hard_to_tell("on a green background"), hard_to_tell("metal"), hard_to_tell("green")
    (True, True, False)
    """
    return words.endswith(" background") or words in _hard_words()


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


AttributeSlot = Literal["adjective", "place", "look", "sentence"]


@dataclass(frozen=True, kw_only=True)
class WordedAttribute:
    """An attribute with values in words.

    Args:
        name: what it is.
        question: how a question answerer is asked for it.
        slot: where the wordings stand in a caption: before the noun, after it, in the place of "photo", or as the whole caption.
        values: with their wordings, the plainest first.
        also: other names of the attribute.
    """

    name: str
    question: str
    slot: AttributeSlot
    values: Mapping[str, tuple[str, ...]]
    also: tuple[str, ...] = ()


@cache
def built_in_attributes() -> tuple[WordedAttribute, ...]:
    content = tomllib.loads(
        files(__package__).joinpath("attributes.toml").read_text(encoding="utf-8")
    )
    return tuple(
        WordedAttribute(
            name=name,
            question=entry["question"],
            slot=cast(AttributeSlot, entry["slot"]),
            values={value: tuple(words) for value, words in entry["values"].items()},
            also=tuple(entry.get("also", ())),
        )
        for name, entry in content.items()
    )


Slot = Literal["look", "adjective", "noun", "place"]
_Addition = tuple[str, tuple[Slot, str]]
_SOUNDS_LIKE_YOU = re.compile(
    r"(uni(?!n|m)|use|usu|eu|ewe|one\b|once|uranium|utensil|ufo)", re.IGNORECASE
)
_SILENT_H = re.compile(r"(hour|honest|honour|honor|heir)", re.IGNORECASE)
_PLURAL = re.compile(r"[^sui]s$")
_FUNCTION_WORDS_TEXT = "a an the of on in at by to from with its and under behind among is has or"
_FUNCTION_WORDS = frozenset(_FUNCTION_WORDS_TEXT.split())
# These say what the word before them is about, and nothing themselves.
_CARRIERS = frozenset({"background", "photo", "picture", "image", "thing"})
_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
_SEPARATORS = re.compile(r"[_\-/\s]+")


Counting = Literal["one", "many", "mass"]
"""How a noun is counted."""


@dataclass(frozen=True, kw_only=True)
class Caption:
    """One caption and what it adds to the plain one.

    Args:
        noun: the noun, None for "a photo" of anything.
        look: what kind of image, None for "photo".
        adjective: stands before the noun.
        place: stands after the noun.
        added: (slot, words shown to people) of everything that the plain caption lacks.
    """

    noun: str | None
    look: str | None = None
    adjective: str | None = None
    place: str | None = None
    added: tuple[tuple[Slot, str], ...] = ()

    @property
    def phrase(self) -> str:
        parts = [with_article(self.look or "photo")]
        if self.noun is not None:
            parts += [
                "of",
                counted(
                    f"{self.adjective} {self.noun}" if self.adjective else self.noun, self.noun
                ),
            ]
        elif self.adjective:
            parts += ["of", with_article(f"{self.adjective} thing")]
        return " ".join([*parts, self.place] if self.place else parts)

    @property
    def contrast(self) -> str:
        return ", ".join(words for _, words in self.added)

    @property
    def n_content_words(self) -> int:
        """Return how many words are added, not counting articles and prepositions; at least one.

        A background counts as a further word where the thing itself could be so: `on a green background` says more than `green`.
        """
        adjectives = built_in_vocabulary().adjectives
        n_words = 0
        for _, shown in self.added:
            words = content_words(shown)
            n_words += len(words) + (
                "background" in shown and any(word in adjectives for word in words)
            )
        return max(1, n_words)

    def combined(self, other: "Caption") -> "Caption":
        """Return the caption that adds what both add; they must use different slots."""
        return replace(
            self,
            noun=other.noun if any(slot == "noun" for slot, _ in other.added) else self.noun,
            look=self.look or other.look,
            adjective=self.adjective or other.adjective,
            place=self.place or other.place,
            added=self.added + other.added,
        )


def content_words(words: str, *, with_carriers: bool = False) -> tuple[str, ...]:
    """Return the words that carry meaning, in lower case.

    Args:
        words: any phrase.
        with_carriers: whether words like `background` are kept, which only say what the word before them is about.

    >>> content_words("on a grassy background, in the Dark")
    ('grassy', 'dark')
    """
    found = _WORD.findall(words.lower())
    return tuple(
        word
        for word in found
        if word not in _FUNCTION_WORDS and (with_carriers or word not in _CARRIERS)
    )


def noun_of(class_name: str) -> str:
    """Return a class name as words: `Golden-Delicious_apple` becomes `golden delicious apple`."""
    words = _SEPARATORS.sub(" ", class_name).strip()
    return words if words.isupper() else words.lower()


def with_article(words: str) -> str:
    """Put `a` or `an` before words, by sound; what is not there has no article.

    >>> [with_article(word) for word in ("apple", "unripe pear", "unicorn", "hour", "one-eyed cat", "no finding")]
    ['an apple', 'an unripe pear', 'a unicorn', 'an hour', 'a one-eyed cat', 'no finding']
    """
    if words.lower().startswith("no "):
        return words
    starts_with_vowel = words[:1].lower() in tuple("aeiou") and not _SOUNDS_LIKE_YOU.match(words)
    return f"{'an' if starts_with_vowel or _SILENT_H.match(words) else 'a'} {words}"


def counting_of(noun: str, vocabulary: Vocabulary | None = None) -> Counting:
    """Return how a noun is counted, judged by its last word.

    >>> [counting_of(noun) for noun in ("apple", "satsumas", "school bus", "oat milk", "children", "glasses")]
    ['one', 'many', 'one', 'mass', 'many', 'many']
    """
    known = vocabulary or built_in_vocabulary()
    last = noun.lower().split(" ")[-1]
    if last in known.mass:
        return "mass"
    if last in known.plural:
        return "many"
    return "many" if _PLURAL.search(last) and last not in known.singular else "one"


def counted(words: str, noun: str) -> str:
    """Put an article before words that end in a noun, unless it is a plural or is not counted."""
    return with_article(words) if _counting(noun) == "one" else words


@lru_cache(maxsize=4096)
def _counting(noun: str) -> Counting:
    return counting_of(noun)


def plain_caption(class_name: str, *, is_absent: bool = False) -> Caption:
    """Return the caption that fits every sample of a class; of samples that lack a label nothing but "a photo" is sure."""
    return Caption(noun=None if is_absent else noun_of(class_name))


def reference_phrase(plain: Caption, caption: Caption) -> str:
    """Return the phrase that lacks what a caption adds; an adjective without a noun needs a thing to stand before.

    >>> anything = plain_caption("apple", is_absent=True)
    >>> [reference_phrase(anything, Caption(noun=None, **added)) for added in ({"adjective": "green"}, {"place": "indoors"})]
    ['a photo of a thing', 'a photo']
    """
    return "a photo of a thing" if caption.noun is None and caption.adjective else plain.phrase


def single_additions(
    plain: Caption, words: ClassWords, vocabulary: Vocabulary
) -> Iterator[Caption]:
    for adjective in words.adjectives:
        yield replace(plain, adjective=adjective, added=(("adjective", adjective),))
    for shown, look in vocabulary.looks.items():
        yield replace(plain, look=look, added=(("look", shown),))
    for noun in words.nouns:
        yield replace(plain, noun=noun_of(noun), added=(("noun", noun_of(noun)),))
    for place in words.places:
        yield replace(plain, place=place, added=(("place", place),))


def pairs_of(singles: Sequence[Caption]) -> Iterator[Caption]:
    """Yield every caption that adds two things of different kinds, in the order of the given ones."""
    for position, first in enumerate(singles):
        for second in singles[position + 1 :]:
            if first.added[0][0] != second.added[0][0]:
                yield first.combined(second)


def all_combinations(
    plain: Caption, words: ClassWords, vocabulary: Vocabulary
) -> Iterator[Caption]:
    """Yield every caption that adds two or more things of different kinds: the whole grammar, which can be very long."""
    by_slot: dict[Slot, list[_Addition]] = {}
    for caption in single_additions(plain, words, vocabulary):
        slot, shown = caption.added[0]
        by_slot.setdefault(slot, []).append((getattr(caption, slot), (slot, shown)))
    for size in range(2, len(by_slot) + 1):
        for slots in combinations(by_slot, size):
            for chosen in product(*(by_slot[slot] for slot in slots)):
                written = {
                    "noun": plain.noun,
                    **dict(zip(slots, (words for words, _ in chosen), strict=True)),
                }
                yield Caption(**written, added=tuple(added for _, added in chosen))


@dataclass(frozen=True, kw_only=True)
class Axis(WordedAttribute):
    """One kind of attribute, whose values stand for every class; `{class}` in its question stands for the class with its article.

    Args:
        example: a value, to show the form that is wanted.
        by_ancestor: values for classes that are a kind of something, before the others.
    """

    example: str
    by_ancestor: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def values_for(self, class_name: str | None, *, most: int) -> tuple[str, ...]:
        """Return built-in values for a class, those of its nearest listed ancestor first; None for no class in particular."""
        above = ancestry(noun_of(class_name)) if class_name else ()
        own = next((self.by_ancestor[name] for name in above if name in self.by_ancestor), ())
        return tuple(dict.fromkeys((*own, *self.values)))[:most]

    def question_for(self, class_name: str) -> str:
        noun = noun_of(class_name)
        return self.question.replace("{class}", counted(noun, noun))

    def caption(self, noun: str | None, value: str) -> Caption:
        if self.slot == "adjective":
            return Caption(noun=noun, adjective=value, added=(("adjective", value),))
        if self.slot == "look":
            return Caption(noun=noun, look=value, added=(("look", value),))
        return Caption(noun=noun, place=value, added=(("place", value),))


@cache
def uncommon_axes() -> Mapping[str, Axis]:
    content = tomllib.loads(
        files(__package__).joinpath("uncommon.toml").read_text(encoding="utf-8")
    )
    return {
        name: Axis(
            name=name,
            slot=entry["slot"],
            question=entry["question"],
            example=entry["example"],
            values={value: (value,) for value in entry["values"]},
            by_ancestor={
                above: tuple(values) for above, values in entry.get("by_ancestor", {}).items()
            },
        )
        for name, entry in content.items()
    }
