"""Who else says that a name fits: columns of the data set, captions, answers to questions, a second encoder."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, IntArray, even_part, unit_rows
from weakspot.core.assistants import Assistants, EmbedTexts
from weakspot.core.errors import ModelError, UnavailableError
from weakspot.core.rules import MembershipRule, single_rules
from weakspot.core.samples import SampleSet, told_by_words
from weakspot.words.caption_judging import SliceView
from weakspot.words.caption_rule import CaptionRule
from weakspot.words.captions import content_words
from weakspot.words.meanings import covers, mean_the_same, phrase_words
from weakspot.words.wordnet import lemma

MIN_TOLD = 5
MAX_VALUES = 200
MAX_VALUE_WORDS = 5
BACKGROUND = "background"
YES, NO = ("yes", "yeah", "true"), ("no", "not", "false")


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What a name says of the samples it is about.

    Args:
        phrase: the name.
        parts: what it adds to the class, piece by piece.
        plain_phrase: the plain caption.
        is_easy: whether it is about the other end.
    """

    phrase: str
    parts: tuple[str, ...]
    plain_phrase: str
    is_easy: bool = False


@dataclass(frozen=True, kw_only=True)
class Statement:
    """What a witness says of a name.

    Args:
        witness: who; empty if there is nobody.
        score: -1 to 1, positive supports the name; None if the witness cannot tell.
    """

    witness: str = ""
    score: float | None = None

    @property
    def disagrees(self) -> bool:
        return self.score is not None and self.score <= 0


@dataclass(frozen=True, kw_only=True)
class SpokenWords:
    """The words of a caption: a green thing on a grey background is not grey.

    Args:
        everywhere: all words.
        behind: those that stand right before `background`.
    """

    everywhere: frozenset[str]
    behind: frozenset[str]

    @classmethod
    def of(cls, caption: str) -> "SpokenWords":
        words = [lemma(word) for word in content_words(caption, with_carriers=True)]
        behind = (before for before, word in pairwise(words) if word == BACKGROUND)
        return cls(everywhere=frozenset(words), behind=frozenset(behind))

    def relevant_to(self, part: str) -> frozenset[str]:
        """Return the words that can speak of a part: those of the background, of the thing itself, or any."""
        if BACKGROUND in phrase_words(part):
            return self.behind or self.everywhere
        return self.everywhere - self.behind if " " not in part else self.everywhere


@dataclass(frozen=True, kw_only=True, eq=False)
class Witnesses:
    """Everybody who can be asked about the names of one slice, independently of the embedding contrast.

    Args:
        rule: the slice's; columns that it reads are no independent witness, nor are those told from embeddings by words.
        samples: where columns and embeddings are looked up.
        seen: the slice's samples.
        assistants: who there is.
        n_captioned: samples whose captions are read, half of them inside.
        n_asked: samples that a question is asked about, half of them inside.
    """

    rule: MembershipRule
    samples: SampleSet
    seen: SliceView
    assistants: Assistants
    n_captioned: int
    n_asked: int

    def ask(self, claim: Claim, *, may_question: bool = True) -> Statement:
        """Return what the first witness says that can tell; who was asked in vain if none can."""
        first = Statement()
        for statement in self._statements(claim, may_question=may_question):
            if statement.score is not None:
                return Statement(
                    witness=statement.witness,
                    score=-statement.score if claim.is_easy else statement.score,
                )
            first = first if first.witness else statement
        return first

    def said_of(self, parts: Sequence[str]) -> tuple[int | None, int]:
        """Return of how many members captions say every part, and how many have one; (None, 0) where that is the rule itself.

        Without captions, and where columns or captions decide who is a member, there is nothing to ask.
        """
        if _columns_of(self.rule) or not self.captions:
            return None, 0
        says = self._by_captions(parts)[self.seen.inside[self._captioned]]
        told = says[~np.isnan(says)]
        return (int(told.sum()), len(told)) if len(told) else (None, 0)

    def _statements(self, claim: Claim, *, may_question: bool) -> Iterator[Statement]:
        told = self._by_columns(claim.parts)
        if told is not None:
            yield Statement(witness="columns", score=self._association(told.astype(np.float64)))
        if self.captions and not _reads_captions(self.rule):
            yield Statement(
                witness="captions",
                score=self._association(self._by_captions(claim.parts), self._captioned),
            )
        if may_question and self.assistants.answers is not None and self.n_asked:
            yield Statement(witness="answers", score=self._by_answers(claim.phrase))
        if self.assistants.second is not None:
            yield Statement(
                witness="second encoder", score=self._by_second(*self.assistants.second, claim)
            )

    def _association(self, says: DoubleArray, chosen: IntArray | None = None) -> float | None:
        """Return the correlation of what a witness says with membership (with depth, if all or none are members)."""
        places = np.arange(len(self.seen.depth)) if chosen is None else chosen
        belongs = self.seen.inside[places].astype(np.float64)
        if belongs.std() == 0:
            belongs = self.seen.depth[places]
        known = np.isfinite(says)
        return correlation(says[known], belongs[known])

    def _choose(self, most: int) -> IntArray:
        """Return positions of samples at even steps, as many inside as outside where that is possible."""
        inside = self.seen.inside
        if inside.all() or not inside.any():
            inside = self.seen.depth >= np.quantile(self.seen.depth, 0.75)
        halves = [np.flatnonzero(inside), np.flatnonzero(~inside)]
        return np.sort(np.concatenate([even_part(half, most // 2) for half in halves]))

    @cached_property
    def _columns(self) -> Mapping[str, tuple[IntArray, tuple[str, ...]]]:
        """Return code of every sample and words of every value, by column; only columns of a few short values."""
        dataset = self.samples.dataset
        used = _columns_of(self.rule) | told_by_words(dataset.table)
        found = {}
        for name in dataset.metadata_names:
            column = dataset.metadata(name)
            if name not in used and _is_of_words(column.type):
                coded = column.take(pa.array(self.seen.view.rows)).combine_chunks()
                coded = coded if pat.is_dictionary(coded.type) else coded.dictionary_encode()
                values = tuple(
                    "" if value is None else str(value) for value in coded.dictionary.to_pylist()
                )
                if len(values) <= MAX_VALUES:
                    found[name] = (np.asarray(coded.indices.fill_null(-1), dtype=np.int64), values)
        return found

    def _by_columns(self, parts: Sequence[str]) -> BoolArray | None:
        """Return which samples [n] have values that mean every part; None if no column speaks of some part."""
        found = np.ones(len(self.seen.depth), dtype=np.bool_)
        for part in parts:
            matching = list(self._matching(part))
            if not matching:
                return None
            found &= np.any(matching, axis=0)
        return found if parts else None

    def _matching(self, part: str) -> Iterator[BoolArray]:
        wanted = phrase_words(part)
        for name, (codes, values) in self._columns.items():
            about = phrase_words(name)
            fits = np.array([_value_means(value, about, wanted) for value in values] + [False])
            if fits.any():
                yield np.asarray(fits[codes], dtype=np.bool_)

    @cached_property
    def _captioned(self) -> IntArray:
        return self._choose(self.n_captioned)

    @cached_property
    def captions(self) -> tuple[str, ...]:
        """Return sentences of some samples, members and others; () if there are none."""
        ask = self.assistants.captions
        if ask is None or not self.n_captioned:
            return ()
        try:
            found = tuple(ask(self.seen.view.rows[self._captioned]))
        except (ModelError, UnavailableError):
            return ()
        return found if len(found) == len(self._captioned) and any(found) else ()

    @cached_property
    def _spoken(self) -> tuple[SpokenWords, ...]:
        return tuple(SpokenWords.of(caption) for caption in self.captions)

    def _by_captions(self, parts: Sequence[str]) -> DoubleArray:
        """Return which captioned samples are said to have every part; NaN where there is no caption."""
        says = np.ones(len(self._spoken))
        for part in parts:
            heard = [spoken.relevant_to(part) for spoken in self._spoken]
            vocabulary = frozenset().union(*heard)
            likes = [
                frozenset(word for word in vocabulary if mean_the_same(word, one))
                for one in content_words(part)
            ]
            says *= [bool(likes) and all(words & like for like in likes) for words in heard]
        return np.where([bool(spoken.everywhere) for spoken in self._spoken], says, np.nan)

    def _by_answers(self, phrase: str) -> float | None:
        ask = self.assistants.answers
        chosen = self._choose(self.n_asked)
        question = (
            f"Is this {phrase}?"
            if phrase.startswith(("a ", "an ", "the "))
            else f"Does this image show {phrase}?"
        )
        try:
            answers = ask(self.seen.view.rows[chosen], question) if ask is not None else []
        except (ModelError, UnavailableError):
            return None
        if len(answers) != len(chosen):
            return None
        return self._association(np.array([_yes_or_no(answer) for answer in answers]), chosen)

    def _by_second(self, space: str, embed_texts: EmbedTexts, claim: Claim) -> float | None:
        if space not in self.samples.spaces:
            return None
        embeddings = self.samples.embeddings(space, self.seen.view.rows)
        try:
            texts = np.asarray(embed_texts([claim.phrase, claim.plain_phrase]), dtype=np.float32)
        except (ModelError, UnavailableError):
            return None
        if texts.shape != (2, embeddings.shape[1]):
            return None
        return self._association(
            np.asarray(unit_rows(embeddings) @ (texts[0] - texts[1]), dtype=np.float64)
        )


def correlation(says: AnyArray, belongs: AnyArray) -> float | None:
    """Return the correlation of two columns; None if one of them is all alike, or there is too little to tell.

    Of a yes-or-no column the rarer answer must have been given a few times.
    """
    if len(says) < 2 * MIN_TOLD:
        return None
    answers, counts = np.unique(says, return_counts=True)
    if (
        len(answers) == 1
        or (len(answers) == 2 and counts.min() < MIN_TOLD)  # noqa: PLR2004 - yes and no
        or np.std(belongs) == 0
    ):
        return None
    return round(float(np.corrcoef(says, belongs)[0, 1]), 6)


@lru_cache(maxsize=65_536)
def _value_means(value: str, about: frozenset[str], wanted: frozenset[str]) -> bool:
    """Return whether a column's value means the wanted words; words of the column's own name need not be repeated.

    A column `is_green` that holds true or false means `green` where it is true.
    """
    if value.lower() in YES + NO:
        return value.lower() in YES and covers(about, wanted) and covers(wanted, about)
    words = phrase_words(value)
    return (
        len(words) <= MAX_VALUE_WORDS
        and covers(wanted, words - about)
        and covers(words | about, wanted)
    )


def _columns_of(rule: MembershipRule) -> set[str]:
    return {name for one in single_rules(rule) for name in one.columns}


def _reads_captions(rule: MembershipRule) -> bool:
    """Return whether captions decide who is a member, so that they cannot be asked again."""
    return any(isinstance(one, CaptionRule) for one in single_rules(rule))


def _is_of_words(kind: pa.DataType) -> bool:
    inner = kind.value_type if pat.is_dictionary(kind) else kind
    checks: tuple[Callable[[pa.DataType], bool], ...] = (
        pat.is_string,
        pat.is_large_string,
        pat.is_boolean,
    )
    return any(check(inner) for check in checks)


def _yes_or_no(answer: str) -> float:
    words = answer.lower().replace(",", " ").replace(".", " ").split()
    if not words or words[0] not in YES + NO:
        return float("nan")
    return float(words[0] in YES)
