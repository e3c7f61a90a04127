"""Answers of a question answerer or language model to the values of an attribute: cleaned, merged, and cut where nobody can tell them."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from weakspot.core.bounds import Bounds, Count, check_bounds

SameMeaning = Callable[[str, str], bool]
CanBeTold = Callable[[Sequence[str]], Sequence[bool]]

MAX_WORDS = 4
MAX_LETTERS = 40
MOST_ANSWERS = 1000
MOST_COMPARED = 100
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
    n_left_over = max(0, len(counts) - MOST_ANSWERS)
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
    for answer, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[
        :MOST_ANSWERS
    ]:
        head = spellings.get(_spell(answer)) or _head(
            answer, [*known, *heads][:MOST_COMPARED], same_meaning
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
