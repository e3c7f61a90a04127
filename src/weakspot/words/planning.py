"""Attributes before assignment: who proposes them, their values, and phrases for these in two halves that share few words.

What a language model answers is checked, never trusted and never executed.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import Annotated

from pydantic import JsonValue

from weakspot.core.assistants import Propose
from weakspot.core.bounds import Bounds, Count, check_bounds
from weakspot.core.errors import ModelError
from weakspot.core.samples import Attribute, AttributeSource, AttributeValue
from weakspot.words.attribute_columns import LeftOut
from weakspot.words.captions import (
    AttributeSlot,
    Caption,
    WordedAttribute,
    built_in_attributes,
    counted,
    noun_of,
)

SameMeaning = Callable[[str, str], bool]
CanBeTold = Callable[[Sequence[str]], Sequence[bool]]

MAX_WORDS = 4
MAX_LETTERS = 40
MAX_ANSWERS = 1000
MAX_COMPARED = 100
NO_ANSWERS = frozenset(
    {"", "unknown", "none", "nothing", "n/a", "na", "not sure", "unsure", "unclear", "can't tell", "cannot tell", "i don't know",
     "don't know", "no idea", "null", "other", "not applicable", "not visible", "unanswerable"}
)  # fmt: skip
YES_WORDS = frozenset({"yes", "true", "yeah", "yep"})
NO_WORDS = frozenset({"no", "false", "nope"})
YES_NO_SHARE = 0.8
_EDGES = re.compile(r"^[^\w]+|[^\w]+$")
_ARTICLE = re.compile(r"^(a|an|the|some|it is|it's|they are|its|in the|in a|on the|on a)\s+")
_SPACES = re.compile(r"[\s_\-]+")
_BRITISH = (
    ("colour", "color"),
    ("grey", "gray"),
    ("centre", "center"),
    ("isation", "ization"),
    ("ise", "ize"),
)


@dataclass(frozen=True, kw_only=True)
class Cut:
    """Which values are kept.

    Args:
        least_count: a value with fewer answers is rare: it is kept if it can be told.
        least_share: so is one with a smaller share of the usable answers.
        most: values that are kept, the most frequent ones.
    """

    least_count: Count = 2
    least_share: Annotated[float, Bounds(ge=0, lt=1)] = 0.02
    most: Annotated[int, Bounds(ge=2)] = 20

    def __post_init__(self) -> None:
        check_bounds(self)


@dataclass(frozen=True, kw_only=True)
class ProposedValue:
    """A value that answers have in common.

    Args:
        value: its most frequent wording, or the known value that it means.
        count: how many answers mean it.
        merged: the other wordings.
    """

    value: str
    count: int
    merged: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ProposedValues:
    """What answers to one question come to.

    Args:
        values: most frequent first.
        is_yes_no: whether the question was answered with yes or no; the values are then `yes` and `no`.
        n_usable: answers that said something.
        n_cut: different answers, after merging, that were too rare or too many.
    """

    values: tuple[ProposedValue, ...]
    is_yes_no: bool = False
    n_usable: int = 0
    n_cut: int = 0


def cleaned(answer: str) -> str:
    """Return an answer in plain lower-case words, or an empty text if it says nothing or too much.

    >>> [cleaned(answer) for answer in ("  A Wooden_table. ", "Not sure", "It is green!", "one two three four five")]
    ['wooden table', '', 'green', '']
    """
    plain = _EDGES.sub("", _SPACES.sub(" ", answer.lower()).strip())
    if plain in NO_ANSWERS:
        return ""
    plain = _ARTICLE.sub("", plain)
    fits = 0 < len(plain) <= MAX_LETTERS and len(plain.split()) <= MAX_WORDS
    return plain if fits and any(letter.isalnum() for letter in plain) else ""


def same_spelling(first: str, second: str) -> bool:
    """Return whether two words differ only in spelling: British or American, one or many, hyphens and spaces.

    >>> [same_spelling(*pair) for pair in (("grey", "gray"), ("trees", "tree"), ("close-up", "close up"), ("tree", "three"))]
    [True, True, True, False]
    """
    return _spell(first) == _spell(second)


def proposed_values(
    answers: Sequence[str],
    *,
    same_meaning: SameMeaning,
    known: Mapping[str, Sequence[str]] | None = None,
    cut: Cut | None = None,
    can_be_told: CanBeTold | None = None,
) -> ProposedValues:
    """Return the values that answers come to; never an error, however odd the answers.

    What sets failures apart is often rare, so beside frequent answers a rare one is a value too, unless the text side could not tell it in
    other samples.

    Args:
        answers: as given.
        same_meaning: whether two words mean the same.
        known: values with words of their own, by value with other wordings of it; they are kept however rare.
        cut: which others are rare, and how many are kept.
        can_be_told: which of some words the text side knows; None if it cannot say.
    """
    counts = Counter(answer for answer in map(cleaned, map(str, answers)) if answer)
    n_usable = counts.total()
    n_yes, n_no = (sum(counts[word] for word in words) for words in (YES_WORDS, NO_WORDS))
    if n_usable and n_yes + n_no >= YES_NO_SHARE * n_usable:
        both = tuple(
            ProposedValue(value=value, count=count)
            for value, count in (("yes", n_yes), ("no", n_no))
            if count
        )
        return ProposedValues(
            values=both, is_yes_no=True, n_usable=n_usable, n_cut=len(counts) - len(both)
        )
    groups = _merge(counts, known or {}, same_meaning)
    rules = cut or Cut()
    fewest = max(rules.least_count, rules.least_share * n_usable)
    rare = [
        group.value for group in groups if group.count < fewest and group.value not in (known or {})
    ]
    if len(rare) == len(groups):
        told: Sequence[bool] = [False] * len(rare)
    else:
        told = [True] * len(rare) if can_be_told is None or not rare else can_be_told(rare)
    untold = {value for value, is_told in zip(rare, told, strict=True) if not is_told}
    kept = [group for group in groups if group.value not in untold][: rules.most]
    n_left_over = max(0, len(counts) - MAX_ANSWERS)
    return ProposedValues(
        values=tuple(kept), n_usable=n_usable, n_cut=len(groups) + n_left_over - len(kept)
    )


def different(words: Iterable[str], same_meaning: SameMeaning) -> tuple[str, ...]:
    """Return cleaned words without those that repeat an earlier one in other words or spelling."""
    kept: list[str] = []
    for word in map(cleaned, words):
        if word and not any(_is_same(word, other, same_meaning) for other in kept):
            kept.append(word)
    return tuple(kept)


def _merge(
    counts: Counter[str], known: Mapping[str, Sequence[str]], same_meaning: SameMeaning
) -> list[ProposedValue]:
    """Return groups of answers, most frequent first; every answer joins the first known value or group that means the same."""
    spellings = {
        _spell(word): value for value, others in known.items() for word in (*others, value)
    }
    heads: dict[str, Counter[str]] = {}
    for answer, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MAX_ANSWERS]:
        head = spellings.get(_spell(answer)) or _head(
            answer, [*known, *heads][:MAX_COMPARED], same_meaning
        )
        spellings.setdefault(_spell(answer), head)
        heads.setdefault(head, Counter())[answer] += count
    groups = [
        ProposedValue(
            value=head,
            count=members.total(),
            merged=tuple(word for word, _ in members.most_common() if word != head),
        )
        for head, members in heads.items()
    ]
    return sorted(groups, key=lambda group: (-group.count, group.value))


def _head(answer: str, heads: Sequence[str], same_meaning: SameMeaning) -> str:
    return next((head for head in heads if same_meaning(answer, head)), answer)


def _is_same(first: str, second: str, same_meaning: SameMeaning) -> bool:
    return same_spelling(first, second) or same_meaning(first, second)


def _spell(word: str) -> str:
    plain = _SPACES.sub("", word.lower())
    for british, american in _BRITISH:
        plain = plain.replace(british, american)
    if plain.endswith("ies"):
        return f"{plain[:-3]}y"
    return plain[:-1] if plain.endswith("s") and not plain.endswith(("ss", "us", "is")) else plain


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


MAX_ATTRIBUTES = 8
MAX_VALUES = 12
MAX_CLASSES = 30


def task_words(task: str, class_names: Sequence[str]) -> str:
    """Return what the images are for, in a sentence.

    >>> task_words("", ["cat", "dog"])
    'Tell apart images of these classes: cat, dog.'
    >>> task_words("Sort fruit", ["apple", "pear"])
    'Sort fruit. The classes are: apple, pear.'
    """
    shown = [noun_of(name) for name in class_names[:MAX_CLASSES]]
    listed = ", ".join(shown) + (
        f" and {len(class_names) - MAX_CLASSES} more" if len(class_names) > MAX_CLASSES else ""
    )
    said = " ".join(task.split()).rstrip(".")
    return (
        f"{said}. The classes are: {listed}."
        if said
        else f"Tell apart images of these classes: {listed}."
    )


def proposed_names(
    propose: Propose, task: str, class_names: Sequence[str], *, same_meaning: SameMeaning
) -> tuple[str, ...]:
    """Return the names of attributes that a language model proposes for a task.

    Raises:
        ModelError: if it does not answer, or names no attribute that can be used.
    """
    prompt = (
        f"An image classifier has this task: {task_words(task, class_names)}\n"
        f"Name at most {MAX_ATTRIBUTES} visual attributes in which images of one and the same class differ, for example the"
        " background, the lighting or the colour. Each must be visible in a single image and have a few different values."
        " The class itself is no attribute.\n"
        'Answer with JSON: {"attributes": ["first attribute", "second attribute"]}'
    )
    answer = propose(prompt, _schema("attributes", fewest=1, most=MAX_ATTRIBUTES))
    nouns = {noun_of(name) for name in class_names}
    names = [
        name for name in different(_texts(answer, "attributes"), same_meaning) if name not in nouns
    ][:MAX_ATTRIBUTES]
    if not names:
        raise ModelError(
            "The language model names no attribute that can be used.", given=str(answer)[:200]
        )
    return tuple(names)


def values_from_model(
    propose: Propose, name: str, task: str, class_names: Sequence[str]
) -> list[str]:
    """Return the values of an attribute that a language model proposes, as it words them.

    Raises:
        ModelError: if it does not answer as it was asked to.
    """
    prompt = (
        f"An image classifier has this task: {task_words(task, class_names)}\n"
        f"List at most {MAX_VALUES} different values, of one or two words each, that the attribute '{name}' can have in such"
        ' images.\nAnswer with JSON: {"values": ["first value", "second value"]}'
    )
    return _texts(propose(prompt, _schema("values", fewest=2, most=MAX_VALUES)), "values")


def built_in_attribute(name: str, same_meaning: SameMeaning) -> WordedAttribute | None:
    """Return the built-in attribute that a name means, or None."""
    for known in built_in_attributes():
        if any(same_spelling(name, other) for other in (known.name, *known.also)):
            return known
    return next((known for known in built_in_attributes() if same_meaning(known.name, name)), None)


def _schema(key: str, *, fewest: int, most: int) -> Mapping[str, JsonValue]:
    return {
        "type": "object",
        "properties": {
            key: {
                "type": "array",
                "items": {"type": "string"},
                "minItems": fewest,
                "maxItems": most,
            }
        },
        "required": [key],
        "additionalProperties": False,
    }


def _texts(answer: JsonValue, key: str) -> list[str]:
    found = answer.get(key) if isinstance(answer, dict) else None
    if not isinstance(found, list):
        raise ModelError(
            f"The language model does not answer with a list of {key}.", given=str(answer)[:200]
        )
    return [item for item in found if isinstance(item, str)]


USUAL_CUT = Cut()
KEEP_ALL = Cut(least_count=1, least_share=0.0)
MIN_VALUES = 2
CLASS_SHARE = 0.5


@dataclass(frozen=True, kw_only=True)
class Plan:
    """An attribute that is to be assigned, or the reason why it is not.

    Args:
        attribute: with values and phrases; None if it is left out.
        left_out: why, if it is.
        notes: what else to know, in sentences.
    """

    attribute: Attribute | None = None
    left_out: LeftOut | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Planner:
    """Makes attributes from words.

    Args:
        class_names: the classes of the task; an attribute whose values are the classes is none.
        same_meaning: whether two words mean the same.
        nouns: what the captions are of, beside anything; see `class_nouns`.
        cut: which answers are rare, and how many values are kept.
        can_be_told: which of some rare answers the text side knows; None if it cannot say.
    """

    class_names: Sequence[str]
    same_meaning: SameMeaning
    nouns: tuple[str, ...] = ()
    cut: Cut = USUAL_CUT
    can_be_told: CanBeTold | None = None

    def built_in(
        self, worded: WordedAttribute, *, source: AttributeSource = "built-in", name: str = ""
    ) -> Attribute:
        values = tuple(self._word(worded, value) for value in worded.values)
        named = name or worded.name
        return Attribute(
            name=named, column=named, source=source, question=worded.question, values=values
        )

    def from_answers(
        self,
        name: str,
        answers: Sequence[str],
        *,
        worded: WordedAttribute | None,
        question: str,
        source: AttributeSource,
    ) -> Plan:
        """Return an attribute whose values were found in answers to a question about samples."""
        return self._plan(name, answers, self.cut, worded=worded, question=question, source=source)

    def from_list(
        self, name: str, values: Sequence[str], *, worded: WordedAttribute | None, question: str
    ) -> Plan:
        return self._plan(
            name, values, KEEP_ALL, worded=worded, question=question, source="proposed"
        )

    def given(
        self, name: str, titles: Sequence[str], *, worded: WordedAttribute | None
    ) -> tuple[AttributeValue, ...]:
        """Return values that a person named, as they are, with phrases."""
        is_yes_no = {title.lower() for title in titles} <= {"yes", "no"}
        found = [
            ProposedValue(value=title.lower() if is_yes_no else title, count=1) for title in titles
        ]
        return tuple(self._value(name, each, worded, is_yes_no=is_yes_no) for each in found)

    def _plan(
        self,
        name: str,
        answers: Sequence[str],
        cut: Cut,
        *,
        worded: WordedAttribute | None,
        question: str,
        source: AttributeSource,
    ) -> Plan:
        known = {} if worded is None else worded.values
        found = proposed_values(
            answers,
            same_meaning=self.same_meaning,
            known=known,
            cut=cut,
            can_be_told=self.can_be_told,
        )
        obstacle = self._obstacle(found, len(answers))
        if obstacle and worded is not None:
            kept = self.built_in(worded, source=source, name=name)
            return Plan(
                attribute=kept,
                notes=(f"The attribute {name!r} has its built-in values: {obstacle}.",),
            )
        if obstacle:
            return Plan(left_out=LeftOut(name=name, why=obstacle))
        values = tuple(
            self._value(name, each, worded, is_yes_no=found.is_yes_no) for each in found.values
        )
        attribute = Attribute(
            name=name, column=name, source=source, question=question, values=values
        )
        rare = f"Of the answers on {name!r}, {found.n_cut} different ones were rare and could not be told, or too many."
        return Plan(attribute=attribute, notes=(rare,) if found.n_cut else ())

    def _obstacle(self, found: ProposedValues, n_answers: int) -> str:
        nouns = {noun_of(name) for name in self.class_names}
        if not found.n_usable:
            return f"none of {n_answers} answers says anything"
        if len(found.values) < MIN_VALUES:
            only = (
                f"the only answer is {found.values[0].value!r}"
                if found.values
                else "no answer is frequent"
            )
            return f"{only} ({found.n_usable} answers)"
        n_classes = sum(each.count for each in found.values if cleaned(each.value) in nouns)
        if n_classes > CLASS_SHARE * sum(each.count for each in found.values):
            return "its values are the classes themselves"
        return ""

    def _value(
        self, name: str, found: ProposedValue, worded: WordedAttribute | None, *, is_yes_no: bool
    ) -> AttributeValue:
        if is_yes_no:
            return AttributeValue(
                value=found.value,
                phrases=yes_phrases(name) if found.value == "yes" else no_phrases(),
            )
        if worded is not None and found.value in worded.values:
            return self._word(worded, found.value, merged=found.merged)
        if worded is not None and worded.slot == "adjective":
            phrases = worded_phrases("adjective", (found.value,), (*NO_NOUN, *self.nouns))
        else:
            phrases = free_phrases(name, found.value)
        return AttributeValue(value=found.value, phrases=phrases, merged=found.merged)

    def _word(
        self, worded: WordedAttribute, value: str, *, merged: tuple[str, ...] = ()
    ) -> AttributeValue:
        phrases = worded_phrases(worded.slot, worded.values[value], (*NO_NOUN, *self.nouns))
        return AttributeValue(value=value, phrases=phrases, merged=merged)
