"""Principal components of unit vectors, read in pieces."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import AnyArray, DoubleArray, FloatArray, IntArray, unit_rows
from weakspot.core.samples import SampleSet

CHUNK_ROWS = 16_384
LEAST_VARIANCE = 1e-9
LEAST_SHARE = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class Reduction:
    """An affine map to few dimensions.

    Args:
        centre: [d] subtracted from unit vectors.
        projection: [k, d], scaled so that the reduced samples have a mean variance of one.
    """

    centre: FloatArray
    projection: FloatArray

    def apply(self, samples: SampleSet, space: str, rows: IntArray) -> FloatArray:
        """Return the rows in few dimensions [n, k]."""
        reduced = np.empty((len(rows), len(self.projection)), dtype=np.float32)
        for start in range(0, len(rows), CHUNK_ROWS):
            # Rows are scaled after they have become short.
            embeddings = samples.embeddings(space, rows[start : start + CHUNK_ROWS])
            block = np.matmul(
                embeddings, self.projection.T, out=reduced[start : start + len(embeddings)]
            )
            block *= _one_over_length(embeddings)[:, None]
        reduced -= self.projection @ self.centre
        return reduced


def with_embedding(samples: SampleSet, space: str, rows: IntArray) -> IntArray:
    """Return the rows that have an embedding, ordered by sample id."""
    found = [rows[:0]]
    for start in range(0, len(rows), CHUNK_ROWS):
        part = rows[start : start + CHUNK_ROWS]
        found.append(part[np.isfinite(samples.embeddings(space, part)).all(axis=1)])
    kept = np.concatenate(found)
    return kept[
        np.argsort(np.array(samples.dataset.sample_ids(kept), dtype=np.str_), kind="stable")
    ]


def fit_reduction(
    samples: SampleSet, space: str, rows: IntArray, *, n_dimensions: int
) -> Reduction | None:
    """Return the principal components of the rows' unit vectors; None when all embeddings are alike.

    Directions whose variance is nothing beside the first one's are left out, so there can be fewer than asked for.
    """
    if not len(rows):
        return None
    width = samples.space(space).embeddings.shape[1]
    directions = _few_rows if len(rows) <= width else _many_rows
    centre, variances, axes = directions(samples, space, rows, n_dimensions)
    if not len(variances) or variances[0] < LEAST_VARIANCE:
        return None
    kept = variances > LEAST_SHARE * variances[0]
    scale = 1.0 / np.sqrt(variances[kept].mean())
    return Reduction(
        centre=centre.astype(np.float32),
        projection=np.asarray(axes[kept] * scale, dtype=np.float32),
    )


def _few_rows(
    samples: SampleSet, space: str, rows: IntArray, n_most: int
) -> tuple[DoubleArray, DoubleArray, DoubleArray]:
    """Return mean, variances in falling order and axes [k, d] by the products of rows with rows."""
    embeddings = unit_rows(samples.embeddings(space, rows)).astype(np.float64)
    centre = embeddings.mean(axis=0)
    embeddings -= centre
    values, left = np.linalg.eigh(embeddings @ embeddings.T / len(rows))
    values, left = _largest(values, left, n_most)
    lengths = np.sqrt(np.maximum(values, LEAST_VARIANCE**2) * len(rows))
    return centre, values, (left.T @ embeddings) / lengths[:, None]


def _many_rows(
    samples: SampleSet, space: str, rows: IntArray, n_most: int
) -> tuple[DoubleArray, DoubleArray, DoubleArray]:
    """Return the same by the covariance, summed over pieces.

    Pieces are shifted by a guess of the mean first: what is then left of it is small, and 32-bit products lose nothing.
    """
    guess = unit_rows(samples.embeddings(space, rows[:: max(1, len(rows) // CHUNK_ROWS)])).mean(
        axis=0
    )
    total = np.zeros(len(guess))
    products = np.zeros((len(guess), len(guess)))
    for start in range(0, len(rows), CHUNK_ROWS):
        embeddings = samples.embeddings(space, rows[start : start + CHUNK_ROWS])
        embeddings *= _one_over_length(embeddings)[:, None]
        embeddings -= guess
        total += embeddings.sum(axis=0)
        products += embeddings.T @ embeddings
    shift = total / len(rows)
    values, axes = np.linalg.eigh(products / len(rows) - np.outer(shift, shift))
    values, axes = _largest(values, axes, n_most)
    return guess + shift, values, axes.T


def _largest(values: AnyArray, axes: AnyArray, n_most: int) -> tuple[DoubleArray, DoubleArray]:
    return np.maximum(values[::-1][:n_most], 0.0), axes[:, ::-1][:, :n_most]


def _one_over_length(embeddings: FloatArray) -> FloatArray:
    lengths = np.sqrt(np.einsum("nd,nd->n", embeddings, embeddings))
    return np.asarray(1.0 / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)
