"""Compiled dealing of folds; imported on first use, because that loads the compiler."""

import numpy as np

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.compiled import kernel

MIXED, FAILING, RIGHT = 0, 1, 2


@kernel()
def count_sides(failed: BoolArray, groups: IntArray) -> tuple[int, int]:
    """Return how many groups have failures, and how many have samples that did not fail."""
    n_codes = groups.max() + 1 if len(groups) else 0
    has, found = np.zeros((2, n_codes), np.int64), np.zeros(2, np.int64)
    for place in range(len(failed)):
        side = int(failed[place])
        found[side] += has[side, groups[place]] == 0
        has[side, groups[place]] = 1
    return found[1], found[0]


@kernel()
def fold_numbers(
    failed: BoolArray, order: IntArray, n_folds: int, groups: IntArray
) -> tuple[IntArray, int]:
    """Return the fold of every sample [n], whole groups dealt out along the order within each side, and how many folds there are.

    Groups of both sides come first, then failing ones, each to the fold with the fewest failures; then the others, each to the fold
    with the fewest of these. There are fewer folds if a side has few groups. With two groups of a side it is in two folds.
    """
    n_failing, n_right = count_sides(failed, groups)
    n_possible = max(2, min(n_folds, n_failing, n_right))
    n_codes = groups.max() + 1 if len(groups) else 0
    sides, fold_of = np.zeros((n_codes, 2), np.int64), np.full(n_codes, -1, np.int64)
    for place in range(len(failed)):
        sides[groups[place], int(failed[place])] += 1
    loads = np.zeros((n_possible, 2), np.int64)
    for kind in range(3):
        for rank in range(len(order)):
            group = groups[order[rank]]
            own = RIGHT if sides[group, 1] == 0 else FAILING if sides[group, 0] == 0 else MIXED
            if own != kind or fold_of[group] >= 0:
                continue
            side, best = int(kind != RIGHT), 0
            for fold in range(1, n_possible):
                best = fold if loads[fold, side] < loads[best, side] else best
            fold_of[group] = best
            loads[best, 0] += sides[group, 0]
            loads[best, 1] += sides[group, 1]
    found = np.empty(len(failed), np.int64)
    for place in range(len(failed)):
        found[place] = fold_of[groups[place]]
    return found, n_possible
