"""Means and deviations of vectors, and parts of classes that are too large."""

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, IntArray
from weakspot.core.rules import LinearRule
from weakspot.core.samples import SampleSet

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


def mean_and_deviation(samples: SampleSet, space: str, rows: IntArray) -> tuple[DoubleArray, DoubleArray] | None:
    """Return mean [d] and deviation [d] of the rows' vectors, read in chunks; constant dimensions get 1, None without vectors."""
    count, total, squares = 0, np.zeros(1), np.zeros(1)
    shift: DoubleArray | None = None
    for start in range(0, len(rows), CHUNK_ROWS):
        values = samples.vectors(space, rows[start : start + CHUNK_ROWS]).astype(np.float64)
        values = values[np.isfinite(values).all(axis=1)]
        if not len(values):
            continue
        shift = values.mean(axis=0) if shift is None else shift
        values -= shift
        count, total, squares = count + len(values), total + values.sum(axis=0), squares + np.square(values).sum(axis=0)
    if shift is None:
        return None
    deviation = np.sqrt(np.maximum(squares / count - np.square(total / count), 0.0))
    return shift + total / count, np.where(deviation > LEAST_DEVIATION, deviation, 1.0)


def stratified_part(failed: BoolArray, n_most: int, draws: np.random.Generator) -> IntArray:
    """Return places of at most so many samples, drawn at random, that keep the share of failures and at least two of each side."""
    if len(failed) <= n_most:
        return np.arange(len(failed))
    parts = [
        draws.permutation(np.flatnonzero(failed == side))[: max(2, round(n_most * float(np.mean(failed == side))))]
        for side in (True, False)
    ]
    return np.sort(np.concatenate(parts))
