"""The samples of a class as captions are compared with them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, FloatArray, IntArray, unit_rows
from weakspot.core.failures import ClassProblem
from weakspot.core.rules import LinearRule, MembershipRule
from weakspot.core.samples import SampleSet

CURVE_SIZES = (5, 10, 20, 50, 100)
CHUNK_ROWS = 65_536
SMALLEST_SHARE = 1e-9


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
        can_tell = variances > SMALLEST_SHARE * np.einsum("md,md->m", added, added)
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
