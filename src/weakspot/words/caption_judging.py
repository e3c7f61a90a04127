"""Captions ranked by how well what they add fits a slice: a stream of any length, of which only the best are kept."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from typing import Literal

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, FloatArray, IntArray, unit_rows
from weakspot.core.assistants import EmbedTexts
from weakspot.core.errors import ModelError
from weakspot.core.failures import ClassProblem
from weakspot.core.rules import LinearRule, MembershipRule
from weakspot.core.samples import SampleSet
from weakspot.words.captions import Caption, reference_phrase


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
            if self._may_say(captions[place])
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

    def _may_say(self, caption: Caption) -> bool:
        return self.allowed is None or all(words in self.allowed for _, words in caption.added)

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
