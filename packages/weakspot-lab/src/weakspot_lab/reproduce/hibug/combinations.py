"""Slices as the paper cuts them: every combination of attribute values is one."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, IntArray
from weakspot.core.dataset import Dataset

SLACK = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class Combinations:
    """Which combination every sample has.

    Args:
        columns: the attributes.
        values: of every combination its values.
        numbers: the combination of every sample [n].
    """

    columns: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    numbers: IntArray

    @classmethod
    def of(cls, dataset: Dataset) -> "Combinations":
        """Return the combinations of all metadata columns."""
        chosen = dataset.metadata_names
        given = [[str(one) for one in dataset.metadata(name).to_pylist()] for name in chosen]
        rows = list(zip(*given, strict=True)) if given else [()] * len(dataset)
        places = {value: number for number, value in enumerate(dict.fromkeys(rows))}
        return cls(
            columns=chosen,
            values=tuple(places),
            numbers=np.array([places[row] for row in rows], dtype=np.int64),
        )

    def accuracy(self, rows: IntArray, is_right: BoolArray) -> DoubleArray:
        """Return the accuracy of every combination on some rows [c]; NaN where none of them has it."""
        count = np.bincount(self.numbers[rows], minlength=len(self.values))
        right = np.bincount(self.numbers[rows], weights=is_right[rows], minlength=len(self.values))
        return np.asarray(np.divide(right, count, out=np.full(len(count), np.nan), where=count > 0))

    def failures(self, rows: IntArray, is_right: BoolArray) -> IntArray:
        """Return how many of some rows fail in every combination [c]."""
        return np.bincount(self.numbers[rows[~is_right[rows]]], minlength=len(self.values))

    def at_most(self, accuracy: DoubleArray, limit: float) -> BoolArray:
        """Return which combinations are no more accurate than a limit [c]; those never seen are not."""
        return np.asarray(np.nan_to_num(accuracy, nan=2.0) <= limit + SLACK, dtype=np.bool_)


def worst_combinations(
    accuracy: DoubleArray, failures: IntArray, *, beta: float
) -> tuple[int, ...]:
    """Return combinations by error rate, worst first, until they hold a share of all failures."""
    known = np.flatnonzero(failures > 0)
    order = known[np.lexsort((known, -failures[known], accuracy[known]))]
    held = np.cumsum(failures[order])
    if not len(order):
        return ()
    enough = int(np.searchsorted(held, beta * failures.sum())) + 1
    return tuple(int(one) for one in order[:enough])
