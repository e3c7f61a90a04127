"""Samples that stand for the others: medoids of k-means clusters of their embeddings; and those that nothing stands for."""

import numpy as np

from weakspot.core.arrays import FloatArray, IntArray, generator, unit_rows

MAX_ROUNDS = 25
MAX_SAMPLE = 20_000
BLOCK = 1024
SAME = 0.9999


def medoids(embeddings: FloatArray, n_clusters: int, *, seed: int) -> IntArray:
    """Return the positions, ascending, of the embeddings nearest to the centres of k-means clusters.

    Args:
        embeddings: [n, d]; rows that are not finite stand for nobody.
        n_clusters: at most so many positions are returned; fewer when there are fewer different embeddings.
        seed: of the first centres.
    """
    known = np.flatnonzero(np.isfinite(embeddings).all(axis=1))
    points = unit_rows(embeddings[known])
    if len(points) <= n_clusters:
        return np.asarray(known, dtype=np.int64)
    centres = _first_centres(points, n_clusters, generator(seed, "attributes", "representatives"))
    nearest = np.full(len(points), -1)
    for _ in range(MAX_ROUNDS):
        found = _distances(points, centres).argmin(axis=1)
        if (found == nearest).all():
            break
        nearest = found
        centres = _means(points, nearest, centres)
    return np.asarray(known[np.unique(_distances(points, centres).argmin(axis=0))], dtype=np.int64)


def most_unlike(embeddings: FloatArray, reference: FloatArray, most: int) -> IntArray:
    """Return the positions, ascending, of embeddings that are least like any reference embedding and any chosen before.

    Args:
        embeddings: [n, d]; rows that are not finite are nobody's.
        reference: [m, d].
        most: how many at most; none that repeats a reference or one chosen before.
    """
    known = np.flatnonzero(np.isfinite(embeddings).all(axis=1))
    points = unit_rows(embeddings[known])
    others = unit_rows(reference[np.isfinite(reference).all(axis=1)])
    nearest = np.full(len(points), -1.0, dtype=np.float32)
    for start in range(0, len(others), BLOCK):
        nearest = np.maximum(nearest, (points @ others[start : start + BLOCK].T).max(axis=1))
    chosen: list[int] = []
    while len(chosen) < min(most, len(points)):
        place = int(nearest.argmin())
        if nearest[place] >= SAME:
            break
        chosen.append(place)
        nearest = np.maximum(nearest, points @ points[place])
        nearest[place] = 1.0
    return np.asarray(known[np.sort(np.array(chosen, dtype=np.int64))], dtype=np.int64)


def _first_centres(points: FloatArray, n_clusters: int, random: np.random.Generator) -> FloatArray:
    """Return centres far apart: each is drawn with a chance that grows with its squared distance to those before."""
    chosen = [int(random.integers(len(points)))]
    nearest = np.square(points - points[chosen[0]]).sum(axis=1, dtype=np.float64)
    while len(chosen) < n_clusters and nearest.sum() > 0:
        chosen.append(int(random.choice(len(points), p=nearest / nearest.sum())))
        nearest = np.minimum(
            nearest, np.square(points - points[chosen[-1]]).sum(axis=1, dtype=np.float64)
        )
    return points[chosen]


def _distances(points: FloatArray, centres: FloatArray) -> FloatArray:
    """Return squared distances [n, k]."""
    lengths = np.square(points).sum(axis=1)[:, None] + np.square(centres).sum(axis=1)
    return np.asarray(lengths - 2.0 * (points @ centres.T), dtype=np.float32)


def _means(points: FloatArray, nearest: IntArray, centres: FloatArray) -> FloatArray:
    """Return the mean of every cluster; an empty one keeps its centre."""
    order = np.argsort(nearest, kind="stable")
    counts = np.bincount(nearest, minlength=len(centres))
    filled = np.flatnonzero(counts)
    starts = np.concatenate([[0], np.cumsum(counts)])[filled]
    means = centres.copy()
    means[filled] = np.add.reduceat(points[order], starts, axis=0) / counts[filled, None]
    return means
