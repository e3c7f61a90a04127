"""Compiled search for groups among the failures of a class, all of it on the Gram matrix."""

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray
from weakspot.discover.directions.kernels import Source
from weakspot.discover.directions.products import compiled, scores_along
from weakspot.discover.directions.validation import Plan, group_accuracy

POWER_STEPS = 20
MEAN_STEPS = 20
SMALLEST_SPREAD = 1e-9
FEWEST_TO_SPLIT = 2


@compiled
def _centre(gram: FloatArray, rows: IntArray) -> DoubleArray:
    """Return the Gram matrix of some samples after their mean was subtracted."""
    n_rows = len(rows)
    found, means = np.empty((n_rows, n_rows)), np.zeros(n_rows)
    for place in range(n_rows):
        for other in range(n_rows):
            found[place, other] = gram[rows[place], rows[other]]
            means[place] += found[place, other] / n_rows
    overall = means.mean()
    for place in range(n_rows):
        for other in range(n_rows):
            found[place, other] += overall - means[place] - means[other]
    return found


@compiled
def _times(matrix: DoubleArray, column: DoubleArray, factor: float) -> DoubleArray:
    found = np.zeros(len(matrix))
    for place in range(len(matrix)):
        for other in range(len(column)):
            found[place] += matrix[place, other] * column[other] * factor
    return found


@compiled
def _main_axis(centred: DoubleArray) -> DoubleArray:
    """Return coordinates along the direction of largest spread; it starts from the sample farthest out, so nothing is random."""
    farthest = 0
    for place in range(len(centred)):
        farthest = place if centred[place, place] > centred[farthest, farthest] else farthest
    axis: DoubleArray = centred[farthest].copy()
    for _ in range(POWER_STEPS):
        length = np.sqrt((axis * axis).sum())
        if length <= SMALLEST_SPREAD:
            break
        axis = _times(centred, axis, 1.0 / length)
    return axis


@compiled
def two_means(gram: FloatArray, rows: IntArray) -> tuple[BoolArray, float, float]:
    """Return which of the rows are in the first of two groups, the spread that the two means explain, and all spread."""
    centred, n_rows = _centre(gram, rows), len(rows)
    axis, member, spread, explained = _main_axis(centred), np.empty(n_rows), 0.0, 0.0
    for place in range(n_rows):
        spread += centred[place, place]
        member[place] = 1.0 if axis[place] > 0.0 else 0.0
    for _ in range(MEAN_STEPS):
        n_first = member.sum()
        if n_first < 1.0 or n_first >= n_rows or spread <= SMALLEST_SPREAD:
            return member > 0.0, 0.0, spread
        along, square, n_moved = _times(centred, member, 1.0 / n_first), 0.0, 0
        for place in range(n_rows):
            square += along[place] * member[place] / n_first
        # Rows are centred, so the mean of the second group is that of the first times minus this ratio.
        ratio = n_first / (n_rows - n_first)
        explained = n_first * square * (1.0 + ratio)
        for place in range(n_rows):
            nearer = (
                1.0
                if along[place] * 2.0 * (1.0 + ratio) - square * (1.0 - ratio * ratio) > 0.0
                else 0.0
            )
            n_moved += nearer != member[place]
            member[place] = nearer
        if n_moved == 0:
            break
    return member > 0.0, explained, spread


@compiled
def chance_shares(gram: FloatArray, orders: IntArray, n_rows: int) -> DoubleArray:
    """Return the share of their spread that two means explain, for the first n samples of every order [r, n]."""
    found = np.zeros(len(orders))
    for place in range(len(orders)):
        _, explained, spread = two_means(gram, orders[place, :n_rows])
        found[place] = explained / spread if spread > SMALLEST_SPREAD else 0.0
    return found


@compiled
def nearest_groups(gram: FloatArray, groups: IntArray, n_groups: int) -> IntArray:
    """Return for every sample the group [n] whose mean is nearest; samples with a negative number belong to none so far."""
    found, best = np.zeros(len(groups), np.int64), np.full(len(groups), np.inf)
    for group in range(n_groups):
        members, n_members = np.zeros(len(groups), np.float32), 0
        for place in range(len(groups)):
            if groups[place] == group:
                members[place] = 1.0
                n_members += 1
        along, square = scores_along(gram, members), 0.0
        for place in range(len(groups)):
            square += along[place] * members[place]
        for place in range(len(groups)):
            distance = square / max(n_members, 1) ** 2 - 2.0 * along[place] / max(n_members, 1)
            if n_members > 0 and distance < best[place]:
                best[place], found[place] = distance, group
    return found


@compiled
def widest_split(gram: FloatArray, groups: IntArray, n_groups: int) -> tuple[int, IntArray, float]:
    """Return the group whose division in two explains most, which samples would leave it, and the share of its spread explained."""
    best, share, chosen, leaving = -1.0, 0.0, -1, np.empty(0, np.int64)
    for group in range(n_groups):
        rows = np.flatnonzero(groups == group)
        if len(rows) < FEWEST_TO_SPLIT:
            continue
        is_first, explained, spread = two_means(gram, rows)
        if explained > best:
            best, share, chosen, leaving = (
                explained,
                explained / max(spread, SMALLEST_SPREAD),
                group,
                rows[is_first],
            )
    return chosen, leaving, share


@compiled
def forced_regions(gram: FloatArray, failed: BoolArray, n_groups: int) -> IntArray:
    """Return regions [n] after failures were divided in two so often that there are as many groups as wanted."""
    groups = np.where(failed, 0, -1)
    for group in range(1, n_groups):
        _, leaving, _ = widest_split(gram, groups, group)
        for place in range(len(leaving)):
            groups[leaving[place]] = group
    return nearest_groups(gram, groups, n_groups)


@compiled
def best_accuracies(
    source: Source, predictions: BoolArray, orders: IntArray, plan: Plan, n_groups: int
) -> DoubleArray:
    """Return for every row of predictions [r, n] the accuracy of the best group when failures are divided as often as wanted.

    The source is a Gram matrix.
    """
    found = np.zeros(len(predictions))
    for place in range(len(predictions)):
        failed = predictions[place]
        regions = forced_regions(source.values, failed, n_groups)
        for group in range(n_groups):
            found[place] = max(
                found[place], group_accuracy(source, failed, regions, group, orders[place], plan)
            )
    return found
