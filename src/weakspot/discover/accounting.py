"""Which of many overlapping memberships account for the failures, and which only share those of others."""

from collections.abc import Sequence
from math import erfc, sqrt

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, IntArray, generator
from weakspot.core.dataset import several_to_a_group
from weakspot.core.group_tests import hypergeometric

MIN_VARIANCE = 400.0
"""From here on the normal distribution is as good as the exact one."""


class Memberships:
    """Many memberships of the same samples, as lists of members.

    Args:
        members: rows of the members of each, ascending.
        failed: [n].
        step: of the samples that did not fail, only every so-many is counted, as so many.

    >>> wide, deep = np.arange(8) < 6, np.arange(8) < 2
    >>> counted = Memberships([np.flatnonzero(wide), np.flatnonzero(deep)], np.arange(8) < 2)
    >>> cells = cells_of([wide], 8)
    >>> (counted.excess(cells) > 0).tolist()
    [False, True]
    """

    def __init__(self, members: Sequence[IntArray], failed: BoolArray, *, step: int = 1) -> None:
        self._failed = np.asarray(failed, dtype=np.bool_)
        is_counted = self._failed | (np.arange(len(failed)) % step == 0)
        self._step, self._is_right = step, is_counted & ~self._failed
        kept = [rows[is_counted[rows]].astype(np.int32) for rows in members]
        self._rows: AnyArray = np.concatenate([np.zeros(0, dtype=np.int32), *kept])
        sizes = [len(rows) for rows in kept]
        self._owners = np.repeat(np.arange(len(kept), dtype=np.int64), sizes)
        self._has_failed = self._failed[self._rows]
        self._n_memberships = len(kept)

    def __len__(self) -> int:
        return self._n_memberships

    def excess(self, cells: IntArray) -> DoubleArray:
        """Return for every membership [m] how much likelier its counts are with a failure rate of its own in its cells.

        It is a logarithm, 0 where members fail no more often than others of their cells [n].
        """
        n_cells = int(cells.max()) + 1 if len(cells) else 1
        keys = self._owners * n_cells + cells[self._rows]
        inside = self._counted(keys[self._has_failed], n_cells)
        n_inside = inside + self._step * self._counted(keys[~self._has_failed], n_cells)
        failures = np.bincount(cells[self._failed], minlength=n_cells)
        totals = failures + self._step * np.bincount(cells[self._is_right], minlength=n_cells)
        is_compared = (n_inside > 0) & (n_inside < totals)
        rates = failures / np.maximum(totals, 1)
        others = np.where(is_compared, totals - n_inside, 0)
        n_inside = np.where(is_compared, n_inside, 0)
        found = np.where(is_compared, inside, 0).sum(axis=1)
        found_outside = np.where(is_compared, failures - inside, 0).sum(axis=1)
        expected, expected_outside = n_inside @ rates, others @ rates
        evidence = _deviance(found, expected, n_inside.sum(axis=1))
        evidence += _deviance(found_outside, expected_outside, others.sum(axis=1))
        return np.where(found > expected + 1e-9, evidence, 0.0)

    def _counted(self, keys: IntArray, n_cells: int) -> IntArray:
        return np.bincount(keys, minlength=len(self) * n_cells).reshape(len(self), n_cells)


def _deviance(found: AnyArray, expected: DoubleArray, totals: AnyArray) -> DoubleArray:
    """Return n times the divergence of the found rate from the expected one."""
    sizes = np.maximum(totals, 1)
    rate, other = found / sizes, np.clip(expected / sizes, 1e-12, 1 - 1e-12)
    with np.errstate(divide="ignore", invalid="ignore"):
        wrong = np.where(rate > 0, rate * np.log(rate / other), 0.0)
        right = np.where(rate < 1, (1 - rate) * np.log((1 - rate) / (1 - other)), 0.0)
    return np.asarray(totals * (wrong + right))


def cells_of(chosen: Sequence[BoolArray], n_samples: int) -> IntArray:
    """Return the cell of every sample [n]: 1 + the place of the smallest membership it belongs to, 0 if it belongs to none."""
    cells = np.zeros(n_samples, dtype=np.int64)
    sizes = [int(inside.sum()) for inside in chosen]
    for place in sorted(range(len(chosen)), key=lambda place: (-sizes[place], place)):
        cells[chosen[place]] = place + 1
    return cells


def excess_p(
    inside: BoolArray, failed: BoolArray, cells: IntArray, groups: IntArray | None = None
) -> float:
    """Return the one-sided p-value that members fail no more often than other samples of their cells.

    Failures are dealt out anew within cells; the distribution is summed exactly unless it is as good as normal. Of a group of images
    one is taken, chosen by its place alone.

    >>> excess_p(np.arange(8) < 4, np.arange(8) < 4, np.zeros(8, dtype=int)).__round__(6)
    0.014286
    """
    several = None if groups is None else several_to_a_group(groups)
    if several is not None:
        order = generator(0, "representatives").permutation(len(several))
        chosen = order[np.unique(several[order], return_index=True)[1]]
        inside, failed, cells = inside[chosen], failed[chosen], cells[chosen]
    totals = np.bincount(cells)
    failures = np.bincount(cells[failed], minlength=len(totals))
    members = np.bincount(cells[inside], minlength=len(totals))
    is_compared = (members > 0) & (members < totals) & (failures > 0) & (failures < totals)
    counts = [
        (int(failures[cell]), int(totals[cell]), int(members[cell]))
        for cell in np.flatnonzero(is_compared)
    ]
    observed = int(np.sum(inside & failed & is_compared[cells]))
    return _tail(observed, counts)


def _tail(observed: int, counts: Sequence[tuple[int, int, int]]) -> float:
    """Return the chance of at least so many failures among members, given (failures, samples, members) of every cell."""
    mean = sum(failed * inside / total for failed, total, inside in counts)
    variance = sum(
        inside * (failed / total) * (1 - failed / total) * (total - inside) / max(total - 1, 1)
        for failed, total, inside in counts
    )
    if variance > MIN_VARIANCE:
        return 0.5 * erfc((observed - 0.5 - mean) / sqrt(2 * variance))
    chances, first = np.ones(1), 0
    for failed, total, inside in counts:
        lowest = max(0, inside - (total - failed))
        law = hypergeometric(failed, total - failed, inside)[lowest : min(failed, inside) + 1]
        chances, first = np.convolve(chances, law), first + lowest
    return min(1.0, float(chances[max(0, observed - first) :].sum()))
