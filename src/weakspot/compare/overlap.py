"""Which failures classifiers share."""

from collections.abc import Sequence

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray
from weakspot.core.errors import DataError


def failure_iou(failed: Sequence[BoolArray]) -> DoubleArray:
    """Return for every two classifiers [m, m] the failures they share, as a part of the failures of either.

    Two classifiers without any failure share everything there is: 1.

    >>> failure_iou([np.array([True, True, False]), np.array([True, False, False])]).tolist()
    [[1.0, 0.5], [0.5, 1.0]]
    """
    if not failed or len({len(one) for one in failed}) != 1:
        raise DataError("Every classifier needs an outcome for the same samples.", given=[len(one) for one in failed])
    matrix = np.stack(failed).astype(np.float64)
    shared = matrix @ matrix.T
    counts = matrix.sum(axis=1)
    either = counts[:, None] + counts[None, :] - shared
    return np.where(either > 0, shared / np.where(either > 0, either, 1.0), 1.0)


def families(names: Sequence[str], overlaps: DoubleArray, *, least: float = 0.5) -> tuple[tuple[str, ...], ...]:
    """Group classifiers whose failures overlap: within a family the mean overlap is at least `least`.

    Average linkage on one minus the overlap; families and their members keep the order of names.
    """
    if len(names) == 1:
        return ((names[0],),)
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    distances = 1.0 - (overlaps + overlaps.T) / 2
    np.fill_diagonal(distances, 0.0)
    groups = fcluster(linkage(squareform(distances, checks=False), method="average"), t=1.0 - least, criterion="distance")
    return tuple(tuple(name for name, own in zip(names, groups, strict=True) if own == group) for group in dict.fromkeys(groups))
