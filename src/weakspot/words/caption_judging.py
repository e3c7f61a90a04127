"""Captions ranked by how well what they add fits a slice, and witnesses: what captions, columns and answers say of its samples."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain, islice, pairwise
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from weakspot.core.arrays import (
    AnyArray,
    BoolArray,
    DoubleArray,
    FloatArray,
    IntArray,
    even_part,
    unit_rows,
)
from weakspot.core.assistants import Assistants, EmbedTexts
from weakspot.core.errors import ModelError, UnavailableError
from weakspot.core.failures import ClassProblem
from weakspot.core.rules import LinearRule, MembershipRule, single_rules
from weakspot.core.samples import SampleSet, told_by_words
from weakspot.words.caption_rule import CaptionRule
from weakspot.words.captions import Caption, content_words, reference_phrase
from weakspot.words.meanings import covers, mean_the_same, phrase_words
from weakspot.words.wordnet import lemma


def word_directions(
    phrases: AnyArray, references: AnyArray, words: AnyArray, centre: AnyArray
) -> FloatArray:
    """Return what words add to a class [m, d], told in two ways that err differently and are taken together.

    A whole phrase less the same phrase without the words ("a photo of a green apple" less "a photo of an apple"), and the words alone
    less what they share with all images of the class.

    Args:
        phrases: embeddings of whole phrases [m, d].
        references: embeddings of the same phrases without the words [m, d].
        words: embeddings of the words alone [m, d].
        centre: mean embedding of the class's images [d].

    >>> made = word_directions(np.array([[1.0, 1.0]]), np.array([[1.0, 0.0]]), np.array([[0.6, 0.8]]), np.array([2.0, 0.0]))
    >>> made.tolist()
    [[0.0, 2.0]]
    """
    middle = unit_rows(np.asarray(centre, dtype=np.float32)[None])[0]
    alone = np.asarray(words, dtype=np.float32)
    alone = alone - (alone @ middle)[:, None] * middle
    return unit_rows(np.asarray(phrases, dtype=np.float32) - references) + unit_rows(alone)


CURVE_SIZES = (5, 10, 20, 50, 100)
CHUNK_ROWS = 65_536
MIN_SHARE = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassView:
    """Samples of one class that have an embedding.

    Args:
        rows: rows of the data set [n].
        embeddings: unit vectors [n, d].
        failed: which of them failed [n].
        covariance: of the embeddings [d, d]; the spread of similarities to anything follows from it, for any number of samples.
    """

    rows: IntArray
    embeddings: FloatArray
    failed: BoolArray
    covariance: FloatArray

    @classmethod
    def of(
        cls, samples: SampleSet, problem: ClassProblem, space: str, *, max_samples: int
    ) -> "ClassView":
        """Return the view of a class; of larger classes, samples at even steps."""
        kept = np.arange(len(problem.rows))
        if len(kept) > max_samples:
            kept = np.unique(np.linspace(0, len(kept) - 1, max_samples).round().astype(np.int64))
        embeddings = samples.embeddings(space, problem.rows[kept])
        known = np.isfinite(embeddings).all(axis=1)
        return cls.made(
            problem.rows[kept][known], unit_rows(embeddings[known]), problem.failed[kept][known]
        )

    @classmethod
    def made(cls, rows: IntArray, embeddings: FloatArray, failed: BoolArray) -> "ClassView":
        products = np.zeros((embeddings.shape[1], embeddings.shape[1]))
        mean = embeddings.mean(axis=0, dtype=np.float64) if len(embeddings) else 0.0
        for start in range(0, len(embeddings), CHUNK_ROWS):
            centred = embeddings[start : start + CHUNK_ROWS] - mean
            products += centred.T @ centred
        covariance = np.asarray(products / max(1, len(embeddings)), dtype=np.float32)
        return cls(rows=rows, embeddings=embeddings, failed=failed, covariance=covariance)

    def only(self, chosen: BoolArray) -> "ClassView":
        return (
            self
            if chosen.all()
            else ClassView.made(self.rows[chosen], self.embeddings[chosen], self.failed[chosen])
        )

    @cached_property
    def centre(self) -> FloatArray:
        """Return the mean embedding [d]; zeros without samples."""
        none = np.zeros(self.embeddings.shape[1], dtype=np.float32)
        return self.embeddings.mean(axis=0) if len(self.embeddings) else none

    @property
    def accuracy(self) -> float:
        return float((~self.failed).mean())

    def n_near(self, n_nearest: int) -> int:
        """Return how many samples count as nearest: at most a quarter of the class."""
        return max(1, min(n_nearest, len(self.embeddings) // 4))

    def accuracies_nearest(self, text: AnyArray) -> DoubleArray:
        """Return the accuracy [n] of the sample nearest to a phrase's embedding [d], of the two nearest, and so on."""
        nearest = np.argsort(-(self.embeddings @ np.asarray(text, dtype=np.float32)), kind="stable")
        return np.cumsum(~self.failed[nearest]) / np.arange(1, len(nearest) + 1)

    def curve(self, accuracies: DoubleArray) -> tuple[tuple[int, float], ...]:
        """Return (K, accuracy of the K nearest) for a few K up to the size of the class."""
        return tuple(
            (size, round(float(accuracies[size - 1]), 6))
            for size in CURVE_SIZES
            if size <= len(accuracies)
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class SliceView:
    """How deep the samples of a class lie in a slice.

    Args:
        view: the samples [n].
        depth: how far inside the slice each lies [n], standardised.
        inside: which of them are members [n].
        slope: covariance of depth and embeddings [d].
        direction: unit direction [d] of the slice in scaled space, None if its rule has none in this space.
        scale: what embeddings are divided by in scaled space [d].
    """

    view: ClassView
    depth: DoubleArray
    inside: BoolArray
    slope: DoubleArray
    direction: DoubleArray | None
    scale: DoubleArray

    @classmethod
    def of(
        cls, rule: MembershipRule, samples: SampleSet, view: ClassView, space: str
    ) -> "SliceView | None":
        """Return the view of a slice; None if all samples lie equally deep or none is left."""
        depth = rule.scores(samples, view.rows)
        known = np.isfinite(depth)
        depth = depth[known]
        if not len(depth) or depth.std() == 0:
            return None
        part = view.only(known)
        depth = (depth - depth.mean()) / depth.std()
        direction, scale = _direction_and_scale(rule, space, part.embeddings.shape[1])
        return cls(
            view=part,
            depth=depth,
            inside=rule.members(samples, part.rows),
            slope=depth @ part.embeddings.astype(np.float64) / len(depth),
            direction=direction,
            scale=scale,
        )

    def agreement(self, additions: AnyArray) -> DoubleArray:
        """Return the correlation [m] of slice depth with the samples' similarity to what captions add [m, d]."""
        added = np.asarray(additions, dtype=np.float32)
        variances = np.einsum("md,md->m", added @ self.view.covariance, added, dtype=np.float64)
        can_tell = variances > MIN_SHARE * np.einsum("md,md->m", added, added)
        return np.asarray(
            added @ self.slope / np.sqrt(np.where(can_tell, variances, np.inf)), dtype=np.float64
        )

    def alignment(self, additions: AnyArray) -> DoubleArray:
        """Return the cosine [m] of the slice's direction with what captions add [m, d], or the agreement if it has none.

        Additions are differences, so only the scale of the rule applies to them; subtracting its centre would add the same
        constant to all.
        """
        if self.direction is None:
            return self.agreement(additions)
        return np.asarray(unit_rows(additions / self.scale) @ self.direction, dtype=np.float64)


def _direction_and_scale(
    rule: MembershipRule, space: str, dimension: int
) -> tuple[DoubleArray | None, DoubleArray]:
    scale = np.ones(dimension)
    if not isinstance(rule, LinearRule) or rule.space != space:
        return None, scale
    direction = np.asarray(rule.direction, dtype=np.float64)
    if rule.scale is not None:
        scale = np.asarray(rule.scale, dtype=np.float64)
    length = float(np.linalg.norm(direction))
    return (direction / length if length else None), scale


Ranking = Literal["data", "direction", "both"]
N_FOR_UNITS = 4_096
N_REMEMBERED = 20_000
DIGITS = 4


class TextSide:
    """The embeddings of phrases, checked; those of the first phrases are kept, as every slice of a class asks for them again."""

    def __init__(self, embed_texts: EmbedTexts, dimension: int) -> None:
        self._embed_texts = embed_texts
        self._dimension = dimension
        self._remembered: dict[str, FloatArray] = {}

    def embeddings(self, phrases: Sequence[str]) -> FloatArray:
        """Return unit vectors [m, d]."""
        new = [phrase for phrase in dict.fromkeys(phrases) if phrase not in self._remembered]
        fresh = dict(zip(new, self._embed(new), strict=True)) if new else {}
        found = np.stack(
            [fresh[phrase] if phrase in fresh else self._remembered[phrase] for phrase in phrases]
        )
        # Copies, because a view of one row would keep the whole chunk alive.
        room = max(0, N_REMEMBERED - len(self._remembered))
        self._remembered.update((phrase, fresh[phrase].copy()) for phrase in new[:room])
        return np.asarray(found, dtype=np.float32)

    def _embed(self, phrases: Sequence[str]) -> FloatArray:
        texts = np.asarray(self._embed_texts(phrases), dtype=np.float32)
        if texts.shape != (len(phrases), self._dimension) or not np.isfinite(texts).all():
            raise ModelError(
                "The text side does not fit the image embeddings.",
                given=f"embeddings of shape {texts.shape}",
                fix=f"It must give {self._dimension} finite numbers a phrase.",
            )
        return unit_rows(texts)


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A caption with what was found; positive where it fits the slice, negative where it fits the other end.

    Args:
        caption: the caption.
        data: agreement with the class's samples.
        direction: alignment with the slice's direction.
        score: what ranks it.
        position: its place among all captions tried; the earlier of two equals wins.
    """

    caption: Caption
    data: float
    direction: float
    score: float
    position: int


@dataclass
class Best:
    """The best captions of one end so far.

    Args:
        sign: 1 for the slice, -1 for the other end.
        most: how many are kept.
        longer_gain: how much better, relatively, a caption must be for every further content word; captions that only add to a
            better one are then dropped. With None the score alone counts and nothing is dropped.
        allowed: words that may be added; any if None.
    """

    sign: int
    most: int
    longer_gain: float | None = None
    allowed: frozenset[str] | None = None
    kept: list[Judged] = field(default_factory=list)

    def add(
        self,
        captions: Sequence[Caption],
        data: DoubleArray,
        direction: DoubleArray,
        scores: DoubleArray,
        first: int,
    ) -> None:
        """Take what is good enough of a chunk whose first caption has the given position."""
        # Discounts only lower a score, so what is below the worst kept one before it cannot enter.
        floor = self.rank(self.kept[-1]) if self.kept and len(self.kept) >= self.most else 0.0
        candidates = [
            place
            for place in np.flatnonzero(self.sign * scores > floor).tolist()
            if self.allowed is None
            or all(words in self.allowed for _, words in captions[place].added)
        ]
        found = [
            Judged(
                caption=captions[place],
                data=float(data[place]),
                direction=float(direction[place]),
                score=float(scores[place]),
                position=first + place,
            )
            for place in candidates
        ]
        if found:
            self.kept = self._sift(
                sorted(self.kept + found, key=lambda one: (-self.rank(one), one.position))
            )

    def rank(self, judged: Judged) -> float:
        """Return what captions are ordered by: the score, less for every further word."""
        discount = 1 + (self.longer_gain or 0.0) * (judged.caption.n_content_words - 1)
        return round(self.sign * judged.score / discount, DIGITS)

    def _sift(self, ranked: Sequence[Judged]) -> list[Judged]:
        if self.longer_gain is None:
            return list(ranked[: self.most])
        kept: list[Judged] = []
        for one in ranked:
            if len(kept) >= self.most:
                break
            added = set(one.caption.added)
            if self.rank(one) > 0 and not any(
                set(better.caption.added) <= added for better in kept
            ):
                kept.append(one)
        return kept


class Judge:
    """Judges captions for one slice, chunk by chunk.

    Args:
        slice_view: the slice.
        texts: the text side.
        reference: the plain caption.
        ranking: what ranks captions.
        chunk_size: captions embedded at a time.
    """

    def __init__(
        self,
        slice_view: SliceView,
        texts: TextSide,
        reference: Caption,
        ranking: Ranking,
        chunk_size: int,
    ) -> None:
        self._slice_view = slice_view
        self._texts = texts
        self._reference = reference
        self._ranking = ranking
        self._chunk_size = chunk_size
        self._units: tuple[float, float] | None = None
        self._n_judged = 0

    def run(self, captions: Iterable[Caption], ends: Sequence[Best]) -> None:
        """Judge captions and let every end keep its best; the first call sets the units for all."""
        stream = iter(captions)
        if self._units is None:
            opening = list(islice(stream, N_FOR_UNITS))
            self._units = self._units_of(opening)
            stream = chain(opening, stream)
        while chunk := list(islice(stream, self._chunk_size)):
            data, direction = self._measure(chunk)
            scores = self._scores(data, direction, self._units)
            for end in ends:
                end.add(chunk, data, direction, scores, self._n_judged)
            self._n_judged += len(chunk)

    def _units_of(self, captions: Sequence[Caption]) -> tuple[float, float]:
        """Return the root mean squares of both measures, so that neither outshouts the other."""
        squares = np.zeros(2)
        for start in range(0, len(captions), self._chunk_size):
            squares += [
                np.square(values).sum()
                for values in self._measure(captions[start : start + self._chunk_size])
            ]
        data, direction = np.sqrt(squares / max(1, len(captions)))
        return float(data) or 1.0, float(direction) or 1.0

    def _measure(self, captions: Sequence[Caption]) -> tuple[DoubleArray, DoubleArray]:
        references = [reference_phrase(self._reference, caption) for caption in captions]
        different = list(dict.fromkeys(references))
        found = self._texts.embeddings(different)[
            [different.index(phrase) for phrase in references]
        ]
        additions = word_directions(
            self._texts.embeddings([caption.phrase for caption in captions]),
            found,
            self._texts.embeddings([caption.contrast.replace(",", "") for caption in captions]),
            self._slice_view.view.centre,
        )
        return self._slice_view.agreement(additions), self._slice_view.alignment(additions)

    def _scores(
        self, data: DoubleArray, direction: DoubleArray, units: tuple[float, float]
    ) -> DoubleArray:
        if self._ranking == "data":
            return data
        if self._ranking == "direction":
            return direction
        return np.asarray((data / units[0] + direction / units[1]) / 2, dtype=np.float64)


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
        if self.captions and not any(
            isinstance(one, CaptionRule) for one in single_rules(self.rule)
        ):
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
