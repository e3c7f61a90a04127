"""The samples of one class as the compiled code takes them.

Means and deviations of embeddings, and parts of classes that are too large.
"""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray
from weakspot.core.rules import LinearRule
from weakspot.core.samples import SampleSet
from weakspot.discover.directions.kernels import Source
from weakspot.discover.directions.products import gram_of
from weakspot.discover.directions.validation import Plan

CHUNK_ROWS = 65_536
LEAST_DEVIATION = 1e-8


def scaling_rule(samples: SampleSet, space: str) -> LinearRule:
    """Return a rule without direction that carries the centre and scale of the reference samples, or of the samples themselves."""
    rows = samples.rows if samples.reference_rows is None else samples.reference_rows
    moments = mean_and_deviation(samples, space, rows)
    if moments is None:
        moments = mean_and_deviation(samples, space, samples.rows)
    centre, scale = moments if moments is not None else (np.zeros(0), np.ones(0))
    return LinearRule(
        space=space,
        encoder_id=samples.space(space).encoder_id,
        direction=(),
        centre=tuple(centre.tolist()),
        scale=tuple(scale.tolist()),
    )


def mean_and_deviation(
    samples: SampleSet, space: str, rows: IntArray
) -> tuple[DoubleArray, DoubleArray] | None:
    """Return mean [d] and deviation [d] of the rows' embeddings, read in chunks; constant dimensions get 1; None without any."""
    count, total, squares = 0, np.zeros(1), np.zeros(1)
    shift: DoubleArray | None = None
    for start in range(0, len(rows), CHUNK_ROWS):
        values = samples.embeddings(space, rows[start : start + CHUNK_ROWS]).astype(np.float64)
        values = values[np.isfinite(values).all(axis=1)]
        if not len(values):
            continue
        shift = values.mean(axis=0) if shift is None else shift
        values -= shift
        count, total, squares = (
            count + len(values),
            total + values.sum(axis=0),
            squares + np.square(values).sum(axis=0),
        )
    if shift is None:
        return None
    deviation = np.sqrt(np.maximum(squares / count - np.square(total / count), 0.0))
    return shift + total / count, np.where(deviation > LEAST_DEVIATION, deviation, 1.0)


def stratified_part(failed: BoolArray, n_most: int, draws: np.random.Generator) -> IntArray:
    """Return places of at most so many samples, drawn at random, that keep the share of failures and at least two of each side."""
    if len(failed) <= n_most:
        return np.arange(len(failed))
    parts = [
        draws.permutation(np.flatnonzero(failed == side))[
            : max(2, round(n_most * float(np.mean(failed == side))))
        ]
        for side in (True, False)
    ]
    return np.sort(np.concatenate(parts))


OWN_GRAM_ROWS = 256
GRAM_ROWS = 1_500
TOLERANCE = 1e-3


def source_of(
    embeddings: FloatArray, groups: IntArray | None = None, *, largest_gram: int = GRAM_ROWS
) -> Source:
    """Return the Gram matrix of embeddings [n, d], or the embeddings themselves if there are too many; and groups [n]."""
    values = np.ascontiguousarray(embeddings, dtype=np.float32)
    own = np.arange(len(values)) if groups is None else np.ascontiguousarray(groups, dtype=np.int64)
    if len(values) > largest_gram:
        return Source(values, is_gram=False, groups=own)
    gram = (
        gram_of(values) if len(values) <= OWN_GRAM_ROWS else np.ascontiguousarray(values @ values.T)
    )
    return Source(gram, is_gram=True, groups=own)


def plan_of(
    costs: tuple[float, ...], *, n_folds: int = 2, n_outer_folds: int = 5, slack: float = 0.0
) -> Plan:
    """Return how models are fitted and chosen, with costs in ascending order."""
    return Plan(
        np.array(sorted(costs), dtype=np.float64), n_folds, n_outer_folds, TOLERANCE, float(slack)
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassData:
    """One class.

    Args:
        embeddings: scaled embeddings [n, d].
        failed: which samples failed [n].
        source: the same embeddings for the solver.
        places: of the samples by which chance is measured: all, or a part of a large class [k].
        chance_source: Gram matrix [k, k] and groups of these.
        has_groups: whether several samples belong together.
    """

    embeddings: FloatArray
    failed: BoolArray
    source: Source
    places: IntArray
    chance_source: Source
    has_groups: bool = False

    @property
    def gram(self) -> FloatArray:
        return self.chance_source.values

    @property
    def is_whole(self) -> bool:
        return len(self.places) == len(self.failed)


def class_data(
    embeddings: FloatArray,
    failed: BoolArray,
    groups: IntArray | None = None,
    *,
    max_null_samples: int,
    draws: np.random.Generator,
) -> ClassData:
    source = source_of(embeddings, groups)
    places = stratified_part(failed, max_null_samples, draws)
    is_same = source.is_gram and len(places) == len(failed)
    chance_source = (
        source
        if is_same
        else source_of(embeddings[places], source.groups[places], largest_gram=len(places))
    )
    return ClassData(
        embeddings=embeddings,
        failed=failed,
        source=source,
        places=places,
        chance_source=chance_source,
        has_groups=groups is not None,
    )
