"""Where a mixture begins: with k-means parts of the embeddings, or with parts of the confusion matrix."""

import numpy as np

from weakspot.core.arrays import AnyArray, DoubleArray, FloatArray, IntArray

CHUNK_ROWS = 16_384
LARGEST_PART = 16_384
N_ROUNDS = 10
FAILURE_SHARE = 0.5


def k_means_parts(reduced: FloatArray, n_parts: int, draws: np.random.Generator) -> IntArray:
    """Return the nearest of n_parts centres for every sample [n]; centres are found on a random part of the samples."""
    chosen = (
        reduced
        if len(reduced) <= LARGEST_PART
        else reduced[np.sort(draws.permutation(len(reduced))[:LARGEST_PART])]
    )
    return nearest(reduced, k_means_centres(np.ascontiguousarray(chosen), n_parts, draws))


def k_means_centres(points: FloatArray, n_parts: int, draws: np.random.Generator) -> FloatArray:
    """Return n_parts centres [n_parts, k]: spread-out samples, then a few rounds of averaging."""
    centres = _spread_out(points, n_parts, draws)
    for _ in range(N_ROUNDS):
        parts = nearest(points, centres)
        counts = np.bincount(parts, minlength=n_parts)
        order = np.argsort(parts, kind="stable")
        filled = np.flatnonzero(counts)
        starts = np.concatenate([[0], np.cumsum(counts[filled])[:-1]])
        moved = centres.copy()
        moved[filled] = np.add.reduceat(points[order], starts, axis=0) / counts[filled, None]
        if np.array_equal(moved, centres):
            break
        centres = moved
    return centres


def confusion_parts(
    reduced: FloatArray,
    labels: IntArray,
    predicted: IntArray,
    n_parts: int,
    draws: np.random.Generator,
) -> IntArray:
    """Return parts [n] that each lie in one cell of the confusion matrix; half of them are for cells of failures.

    Cells get parts by their size; a cell with several is split by k-means, and samples of cells that got none go to the
    nearest centre.
    """
    cells, cell_of = np.unique(np.stack([labels, predicted]), axis=1, return_inverse=True)
    cell_of = np.asarray(cell_of).ravel()
    counts = np.bincount(cell_of).astype(np.float64)
    allotted = _allot(counts, cells[0] != cells[1], n_parts)
    parts = np.full(len(reduced), -1, dtype=np.int64)
    centres: list[FloatArray] = []
    first = 0
    for cell in np.flatnonzero(allotted):
        inside = np.flatnonzero(cell_of == cell)
        found = k_means_parts(reduced[inside], int(allotted[cell]), draws)
        parts[inside] = first + found
        centres += [
            reduced[inside[found == part]].mean(axis=0)
            for part in range(allotted[cell])
            if np.any(found == part)
        ]
        first += int(allotted[cell])
    left = parts < 0
    if left.any():
        numbers = np.unique(parts[~left])
        parts[left] = numbers[nearest(reduced[left], np.stack(centres))]
    return parts


def nearest(points: FloatArray, centres: FloatArray) -> IntArray:
    """Return the nearest centre of every point [n]."""
    found = np.empty(len(points), dtype=np.int64)
    lengths = np.square(centres).sum(axis=1)
    for start in range(0, len(points), CHUNK_ROWS):
        block = points[start : start + CHUNK_ROWS]
        found[start : start + len(block)] = np.argmin(
            lengths[:, None] - 2.0 * (centres @ block.T), axis=0
        )
    return found


def _spread_out(points: FloatArray, n_parts: int, draws: np.random.Generator) -> FloatArray:
    """Draw centres one by one, each with a chance that grows with the squared distance to those before."""
    centres = np.empty((n_parts, points.shape[1]), dtype=np.float32)
    centres[0] = points[draws.integers(len(points))]
    lengths = np.square(points).sum(axis=1, dtype=np.float64)
    distances = np.full(len(points), np.inf)
    for place in range(1, n_parts):
        last = centres[place - 1]
        distances = np.minimum(
            distances, np.maximum(lengths - 2.0 * (points @ last) + float(last @ last), 0.0)
        )
        total = np.cumsum(distances)
        drawn = draws.random() * total[-1]
        centres[place] = points[
            min(int(np.searchsorted(total, drawn, side="right")), len(points) - 1)
        ]
    return centres


def _allot(counts: DoubleArray, is_failure: AnyArray, n_parts: int) -> IntArray:
    weights = counts.copy()
    for side, share in ((is_failure, FAILURE_SHARE), (~is_failure, 1.0 - FAILURE_SHARE)):
        if side.any():
            weights[side] *= share / counts[side].sum()
    given = np.zeros(len(counts), dtype=np.int64)
    for _ in range(n_parts):
        wanting = np.where(given < counts, weights / (given + 1), -1.0)
        best = int(np.argmax(np.round(wanting, 12)))
        given[best] += wanting[best] > 0
    return given
