"""Compiled cross-validation: folds, the choice of C, and scores of samples that took no part in either."""

from typing import NamedTuple

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray
from weakspot.core.group_dealing.kernels import count_sides, fold_numbers
from weakspot.discover.directions.kernels import Source, svm_path
from weakspot.discover.directions.products import compiled, weighted_sum

LEAST_PER_SIDE = 2
LEAST_GAIN = 1e-9
LEAST_SQUARE = 1e-20


class Plan(NamedTuple):
    """How models are fitted and chosen.

    Args:
        costs: [m] ascending.
        n_folds: by which C is chosen.
        n_outer_folds: by which strength is measured.
        tolerance: largest violation of optimality that is let pass.
        slack: by how many standard errors a smaller cost may be worse than the best one and still be preferred.
    """

    costs: DoubleArray
    n_folds: int
    n_outer_folds: int
    tolerance: float
    slack: float


@compiled
def n_failures(failed: BoolArray) -> int:
    found = 0
    for place in range(len(failed)):
        found += failed[place]
    return found


@compiled
def _places(labels: IntArray, label: int, is_kept: bool) -> IntArray:  # noqa: FBT001 - compiled code knows no keywords
    found, n_found = np.empty(len(labels), np.int64), 0
    for place in range(len(labels)):
        if (labels[place] == label) == is_kept:
            found[n_found] = place
            n_found += 1
    return found[:n_found]


@compiled
def taken(predictions: BoolArray, rows: IntArray) -> BoolArray:
    found = np.empty(len(rows), np.bool_)
    for place in range(len(rows)):
        found[place] = predictions[rows[place]]
    return found


@compiled
def part_of(source: Source, rows: IntArray) -> Source:
    values = source.values
    found = np.empty((len(rows), len(rows) if source.is_gram else values.shape[1]), np.float32)
    for place in range(len(rows)):
        for other in range(found.shape[1]):
            found[place, other] = values[rows[place], rows[other] if source.is_gram else other]
    groups = np.empty(len(rows), np.int64)
    for place in range(len(rows)):
        groups[place] = source.groups[rows[place]]
    return Source(found, source.is_gram, groups)


@compiled
def _narrow(signed: DoubleArray) -> FloatArray:
    found = np.empty(len(signed), np.float32)
    for place in range(len(signed)):
        found[place] = signed[place]
    return found


@compiled
def held_out_scores(
    source: Source, kept: IntArray, held_out: IntArray, part: Source, signed: DoubleArray
) -> DoubleArray:
    """Return scores [k] without bias of held-out samples by a model [n] over the kept ones, whose source is the given part."""
    found, values = np.zeros(len(held_out)), source.values
    if source.is_gram:
        for place in range(len(held_out)):
            for other in range(len(kept)):
                found[place] += signed[other] * values[held_out[place], kept[other]]
    else:
        direction = weighted_sum(part.values, _narrow(signed))
        for place in range(len(held_out)):
            for other in range(len(direction)):
                found[place] += direction[other] * values[held_out[place], other]
    return found


@compiled
def length_of(part: Source, signed: DoubleArray) -> float:
    """Return the length of the direction of a model [n]; 1 if there is none."""
    narrow = _narrow(signed)
    along, square = weighted_sum(part.values, narrow), 0.0
    for place in range(len(along)):
        square += along[place] * (narrow[place] if part.is_gram else along[place])
    return np.sqrt(square) if square > LEAST_SQUARE else 1.0


@compiled
def accuracy_of(failed: BoolArray, scores: DoubleArray, bias: float) -> float:
    """Return the balanced accuracy of calling samples failures whose score and bias are not negative; a missing side counts half."""
    caught, passed, n_failed = 0, 0, 0
    for place in range(len(failed)):
        if failed[place]:
            n_failed += 1
            caught += scores[place] + bias >= 0.0
        else:
            passed += scores[place] + bias < 0.0
    n_right = len(failed) - n_failed
    return ((caught / n_failed if n_failed else 0.5) + (passed / n_right if n_right else 0.5)) / 2.0


@compiled
def best_cost(source: Source, failed: BoolArray, orders: IntArray, plan: Plan) -> int:
    """Return the smallest cost whose accuracy over the folds of all orders [r, n] is about the best; the middle one if unsure."""
    n_failing, n_right = count_sides(failed, source.groups)
    if len(plan.costs) == 1 or min(n_failing, n_right) < LEAST_PER_SIDE:
        return len(plan.costs) // 2
    totals = np.zeros(len(plan.costs))
    for draw in range(len(orders)):
        folds, n_folds = fold_numbers(failed, orders[draw], plan.n_folds, source.groups)
        for fold in range(n_folds):
            kept, held_out = _places(folds, fold, False), _places(folds, fold, True)  # noqa: FBT003
            part, predictions = part_of(source, kept), taken(failed, held_out)
            signed, biases = svm_path(part, taken(failed, kept), plan.costs, plan.tolerance)
            for cost in range(len(totals)):
                scores = held_out_scores(source, kept, held_out, part, signed[cost])
                totals[cost] += accuracy_of(predictions, scores, biases[cost]) / n_folds
    best = totals.max() / len(orders)
    error = 0.5 * np.sqrt(best * (1.0 - best) * (1.0 / n_failing + 1.0 / n_right))
    for cost in range(len(totals)):
        if totals[cost] / len(orders) >= best - plan.slack * error - LEAST_GAIN:
            return cost
    return 0


@compiled
def chosen_model(
    source: Source, failed: BoolArray, orders: IntArray, plan: Plan
) -> tuple[int, DoubleArray, DoubleArray]:
    """Return which cost the folds of all orders choose, and signed variables [1, n] and bias [1] of the model fitted with it."""
    chosen = best_cost(source, failed, orders, plan)
    signed, biases = svm_path(source, failed, plan.costs[chosen : chosen + 1], plan.tolerance)
    return chosen, signed, biases


@compiled
def order_within(order: IntArray, kept: IntArray) -> IntArray:
    """Return an order of all samples as an order [1, k] of the kept ones, by their places."""
    place_of, found, n_found = (
        np.full(len(order), -1, np.int64),
        np.empty((1, len(kept)), np.int64),
        0,
    )
    for place in range(len(kept)):
        place_of[kept[place]] = place
    for rank in range(len(order)):
        if place_of[order[rank]] >= 0:
            found[0, n_found] = place_of[order[rank]]
            n_found += 1
    return found


@compiled
def nested_scores(source: Source, failed: BoolArray, order: IntArray, plan: Plan) -> DoubleArray:
    """Return a score [n] of every sample along a unit direction that never saw its group, with a cost that was chosen without it.

    Each side must have two groups at least.
    """
    found = np.empty(len(failed))
    folds, n_folds = fold_numbers(failed, order, plan.n_outer_folds, source.groups)
    for fold in range(n_folds):
        kept, held_out = _places(folds, fold, False), _places(folds, fold, True)  # noqa: FBT003
        part = part_of(source, kept)
        _, signed, biases = chosen_model(part, taken(failed, kept), order_within(order, kept), plan)
        scores, length = (
            held_out_scores(source, kept, held_out, part, signed[0]),
            length_of(part, signed[0]),
        )
        for place in range(len(held_out)):
            found[held_out[place]] = (scores[place] + biases[0]) / length
    return found


@compiled
def group_rows(failed: BoolArray, regions: IntArray, group: int) -> IntArray:
    """Return the places of all samples that did not fail and of the failures in one region."""
    found, n_found = np.empty(len(failed), np.int64), 0
    for place in range(len(failed)):
        if not failed[place] or regions[place] == group:
            found[n_found] = place
            n_found += 1
    return found[:n_found]


@compiled
def group_accuracy(
    source: Source, failed: BoolArray, regions: IntArray, group: int, order: IntArray, plan: Plan
) -> float:
    """Return how well the failures of one group are told from samples that did not fail, by nested scores of the group's region.

    Failures of other groups take no part. Samples that did not fail all serve to fit, but only those of the region [n] are counted:
    failures were put together because they are alike, so they must be compared with others like them. 0.5 if there is too little.
    """
    rows = group_rows(failed, regions, group)
    predictions = taken(failed, rows)
    n_failed, part = n_failures(predictions), part_of(source, rows)
    n_failing, n_right = count_sides(predictions, part.groups)
    if n_failing < LEAST_PER_SIDE or n_right < LEAST_PER_SIDE:
        return 0.5
    scores = nested_scores(part, predictions, order_within(order, rows)[0], plan)
    inside, inside_scores, n_inside = np.empty(len(rows), np.bool_), np.empty(len(rows)), 0
    for place in range(len(rows)):
        if regions[rows[place]] == group:
            inside[n_inside], inside_scores[n_inside] = predictions[place], scores[place]
            n_inside += 1
    if n_inside - n_failed < LEAST_PER_SIDE:
        return accuracy_of(predictions, scores, 0.0)
    return accuracy_of(inside[:n_inside], inside_scores[:n_inside], 0.0)
