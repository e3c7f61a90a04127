"""Compiled loops of failure directions: balanced linear SVMs along the path of C, cross-validation, and groups of failures.

Besides products of embeddings; the search for groups works on the Gram matrix alone.
"""

from collections.abc import Callable
from typing import NamedTuple, ParamSpec, TypeVar

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray
from weakspot.core.compiled import kernel
from weakspot.core.kernels import count_sides, fold_numbers

Given = ParamSpec("Given")
Returned = TypeVar("Returned")


def compiled(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """Compile a function on its first call, keep the machine code on disk, and let other threads run meanwhile."""
    return kernel()(function)


def _compiled_sums(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """Compile a function whose sums may be taken in another order than written, which lets them use wide registers."""
    return kernel(fastmath={"reassoc", "contract", "nsz"})(function)


@_compiled_sums
def _four_products(
    embeddings: FloatArray, row: int, below: int, other: int, beside: int
) -> tuple[float, float, float, float]:
    upper, lower, left, right = (
        embeddings[row],
        embeddings[below],
        embeddings[other],
        embeddings[beside],
    )
    sums = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0)
    first, second, third, fourth = sums
    for place in range(len(upper)):
        first += upper[place] * left[place]
        second += upper[place] * right[place]
        third += lower[place] * left[place]
        fourth += lower[place] * right[place]
    return float(first), float(second), float(third), float(fourth)


@compiled
def gram_of(embeddings: FloatArray) -> FloatArray:
    """Return all inner products of embeddings [n, d]; small ones are faster here than in a library that starts threads for them."""
    last, found = len(embeddings) - 1, np.empty((len(embeddings), len(embeddings)), np.float32)
    for row in range(0, last + 1, 2):
        below = min(row + 1, last)
        for other in range(row, last + 1, 2):
            beside = min(other + 1, last)
            first, second, third, fourth = _four_products(embeddings, row, below, other, beside)
            found[row, other] = found[other, row] = first
            found[row, beside] = found[beside, row] = second
            found[below, other] = found[other, below] = third
            found[below, beside] = found[beside, below] = fourth
    return found


@_compiled_sums
def _product(left: FloatArray, right: FloatArray) -> float:
    found = np.float32(0.0)
    for place in range(len(left)):
        found += left[place] * right[place]
    return float(found)


@compiled
def scores_along(rows: FloatArray, direction: FloatArray) -> FloatArray:
    """Return the products of rows [n, d] with a direction [d]."""
    found = np.empty(len(rows), np.float32)
    for row in range(len(rows)):
        found[row] = _product(rows[row], direction)
    return found


@compiled
def weighted_sum(rows: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the sum [d] of rows [n, d] times their weights [n]."""
    found = np.zeros(rows.shape[1], np.float32)
    for row in range(len(rows)):
        for place in range(rows.shape[1]):
            found[place] += weights[row] * rows[row, place]
    return found


MIN_CURVATURE = 1e-10
NEAR_BOUND = 1e-9
BLOCK = 512
STEPS_IN_BLOCK = 5_000
MAX_BLOCKS = 1_000
STEPS_PER_SAMPLE = 2_000
INNER_SHARE = 0.1
MIN_BLOCK = 2
MARGIN_WIDTH = 2.0
HALVINGS = 30


class Source(NamedTuple):
    """What is known of samples.

    Args:
        values: their Gram matrix [n, n] or, if that would be too large, their embeddings [n, d].
        is_gram: which of both.
        groups: number of the group of every sample [n]; folds keep groups whole.
    """

    values: FloatArray
    is_gram: bool
    groups: IntArray


class Dual(NamedTuple):
    """The dual problem on its way to the solution, all [n]."""

    signed: DoubleArray
    error: DoubleArray
    low: DoubleArray
    high: DoubleArray


@compiled
def _most_violating(dual: Dual) -> int:
    signed, error, high = dual.signed, dual.error, dual.high
    first, top = -1, -np.inf
    for place in range(len(signed)):
        if signed[place] < high[place] and error[place] > top:
            top, first = error[place], place
    return first


@compiled
def _partner(gram: FloatArray, dual: Dual, first: int) -> tuple[int, float]:
    """Return the variable that gains most by giving to the first one, and the largest violation."""
    signed, error, low = dual.signed, dual.error, dual.low
    row, top, bottom, second, best = gram[first], error[first], np.inf, -1, -1.0
    for place in range(len(signed)):
        if signed[place] > low[place]:
            bottom = min(bottom, error[place])
            gap = top - error[place]
            if gap > 0.0:
                gain = (
                    gap
                    * gap
                    / max(row[first] + gram[place, place] - 2.0 * row[place], MIN_CURVATURE)
                )
                if gain > best:
                    best, second = gain, place
    return second, top - bottom


@compiled
def _move(gram: FloatArray, dual: Dual, first: int, second: int) -> int:
    """Let the second variable give to the first as much as is best, and return the next one to receive."""
    signed, error, low, high = dual.signed, dual.error, dual.low, dual.high
    row, other = gram[first], gram[second]
    room_up, room_down = high[first] - signed[first], signed[second] - low[second]
    curvature = max(row[first] + other[second] - 2.0 * row[second], MIN_CURVATURE)
    size = min((error[first] - error[second]) / curvature, room_up, room_down)
    # Bounds are met exactly, or a rounding error would leave a variable free for ever.
    signed[first] = high[first] if size == room_up else signed[first] + size
    signed[second] = low[second] if size == room_down else signed[second] - size
    following, top = -1, -np.inf
    for place in range(len(signed)):
        error[place] -= size * (row[place] - other[place])
        if signed[place] < high[place] and error[place] > top:
            top, following = error[place], place
    return following


@compiled
def pair_steps(gram: FloatArray, dual: Dual, tolerance: float, max_steps: int) -> int:
    """Move pairs of variables, in place, until no pair violates optimality by the tolerance; return the number of moves.

    Each step takes the most violating variable and the partner with the largest gain to second order (Fan, Chen and Lin 2005).
    """
    first = _most_violating(dual)
    for step in range(max_steps):
        if first < 0:
            return step
        second, violation = _partner(gram, dual, first)
        if second < 0 or violation < tolerance:
            return step
        first = _move(gram, dual, first, second)
    return max_steps


@compiled
def _mark_largest(
    values: DoubleArray, is_open: BoolArray, n_wanted: int, is_taken: BoolArray
) -> float:
    """Mark the largest open values, as many as wanted, and return the largest; halving an interval does it without sorting."""
    smallest, largest = np.inf, -np.inf
    for place in range(len(values)):
        if is_open[place]:
            smallest, largest = min(smallest, values[place]), max(largest, values[place])
    unsure, sure = smallest, largest + 1.0
    for _ in range(HALVINGS):
        middle, n_above = (unsure + sure) / 2.0, 0
        for place in range(len(values)):
            n_above += is_open[place] and values[place] >= middle
        if n_above <= n_wanted:
            sure = middle
        else:
            unsure = middle
    n_taken = 0
    for limit in (sure, unsure):
        for place in range(len(values)):
            if (
                n_taken < n_wanted
                and is_open[place]
                and values[place] >= limit
                and (limit == sure or values[place] < sure)
            ):
                is_taken[place] = True
                n_taken += 1
    return largest


@compiled
def _working_block(dual: Dual, size: int) -> tuple[IntArray, float]:
    """Return the most violating variables, half of them from either end, and the largest violation."""
    n_samples = len(dual.signed)
    is_open, is_taken, falling = (
        np.empty(n_samples, np.bool_),
        np.zeros(n_samples, np.bool_),
        np.empty(n_samples),
    )
    for place in range(n_samples):
        is_open[place] = dual.signed[place] < dual.high[place]
    top = _mark_largest(dual.error, is_open, size // 2, is_taken)
    for place in range(n_samples):
        is_open[place], falling[place] = dual.signed[place] > dual.low[place], -dual.error[place]
    bottom = -_mark_largest(falling, is_open, size // 2, is_taken)
    block, n_taken = np.empty(n_samples, np.int64), 0
    for place in range(n_samples):
        if is_taken[place]:
            block[n_taken] = place
            n_taken += 1
    return block[:n_taken], top - bottom


@compiled
def _block_of(embeddings: FloatArray, dual: Dual, block: IntArray) -> tuple[FloatArray, Dual]:
    chosen, inside = (
        np.empty((len(block), embeddings.shape[1]), np.float32),
        np.empty((4, len(block))),
    )
    for place in range(len(block)):
        row = block[place]
        chosen[place] = embeddings[row]
        inside[0, place], inside[1, place] = dual.signed[row], dual.error[row]
        inside[2, place], inside[3, place] = dual.low[row], dual.high[row]
    return chosen, Dual(inside[0], inside[1], inside[2], inside[3])


@compiled
def block_steps(embeddings: FloatArray, dual: Dual, tolerance: float) -> int:
    """Do what `pair_steps` does, a block of variables at a time and without the Gram matrix of all; return the number of blocks."""
    size = min(BLOCK, len(dual.signed))
    for step in range(MAX_BLOCKS):
        block, violation = _working_block(dual, size)
        if violation < tolerance or len(block) < MIN_BLOCK:
            return step
        chosen, inside = _block_of(embeddings, dual, block)
        pair_steps(
            gram_of(chosen), inside, max(0.5 * tolerance, INNER_SHARE * violation), STEPS_IN_BLOCK
        )
        changes = np.empty(len(block), np.float32)
        for place in range(len(block)):
            changes[place] = inside.signed[place] - dual.signed[block[place]]
            dual.signed[block[place]] = inside.signed[place]
        along = scores_along(embeddings, weighted_sum(chosen, changes))
        for place in range(len(along)):
            dual.error[place] -= along[place]
    return MAX_BLOCKS


@compiled
def _bias(dual: Dual) -> float:
    total, n_free, top, bottom = 0.0, 0, -np.inf, np.inf
    for place in range(len(dual.signed)):
        value, error, low, high = (
            dual.signed[place],
            dual.error[place],
            dual.low[place],
            dual.high[place],
        )
        if low < value < high:
            total += error
            n_free += 1
        if value < high:
            top = max(top, error)
        if value > low:
            bottom = min(bottom, error)
    return total / n_free if n_free else (top + bottom) / 2.0


@compiled
def _bounds(failed: BoolArray) -> FloatArray:
    """Return the signed bounds [n] for C = 1: failures and others weigh the same in all."""
    n_failed = 0
    for place in range(len(failed)):
        n_failed += failed[place]
    found = np.empty(len(failed), np.float32)
    for place in range(len(failed)):
        found[place] = 0.5 * len(failed) / (n_failed if failed[place] else n_failed - len(failed))
    return found


@compiled
def _open_interval(scores: FloatArray, bounds: FloatArray) -> tuple[float, float, float]:
    """Return the lowest score of samples that did not fail, the highest of failures, and the middle between the two means."""
    lowest, highest, middle = np.inf, -np.inf, 0.0
    for place in range(len(scores)):
        middle += abs(bounds[place]) * scores[place] / len(scores)
        if bounds[place] > 0.0:
            highest = max(highest, scores[place])
        else:
            lowest = min(lowest, scores[place])
    return lowest, highest, middle


@compiled
def _start(
    signed: DoubleArray, scores: DoubleArray, bounds: FloatArray, cost: float, factor: float
) -> Dual:
    """Return the dual problem for a cost, from the solution for a smaller one; variables at their bound stay there, exactly."""
    found = np.empty((4, len(signed)))
    for place in range(len(signed)):
        bound, stretched = cost * bounds[place], signed[place] * factor
        found[0, place] = bound if abs(stretched) >= (1.0 - NEAR_BOUND) * abs(bound) else stretched
        found[1, place] = (1.0 if bound > 0.0 else -1.0) - scores[place] * factor
        found[2, place], found[3, place] = min(bound, 0.0), max(bound, 0.0)
    return Dual(found[0], found[1], found[2], found[3])


@compiled
def svm_path(
    source: Source, failed: BoolArray, costs: DoubleArray, tolerance: float
) -> tuple[DoubleArray, DoubleArray]:
    """Return signed variables [m, n] and biases [m] of the balanced SVM for ascending costs [m]; both sides must occur.

    While the cost is small, every variable lies at its bound and the scores need no step at all. The bounds of both sides sum to
    the same, so the bias is then open within an interval: zero is put midway between the mean scores of both sides, as far as the
    interval allows. A larger cost starts from the solution of the one before, stretched to the new bounds.
    """
    bounds, values, n_samples = _bounds(failed), source.values, len(failed)
    at_bounds = scores_along(values, bounds if source.is_gram else weighted_sum(values, bounds))
    lowest, highest, middle = _open_interval(at_bounds, bounds)
    found, biases = np.empty((len(costs), n_samples)), np.empty(len(costs))
    signed, scores, last = bounds.astype(np.float64), at_bounds.astype(np.float64), 1.0
    for step in range(len(costs)):
        cost = costs[step]
        dual = _start(signed, scores, bounds, cost, cost / last)
        if cost * (highest - lowest) <= MARGIN_WIDTH:
            biases[step] = min(max(-cost * middle, -1.0 - cost * lowest), 1.0 - cost * highest)
        else:
            if source.is_gram:
                pair_steps(values, dual, tolerance, STEPS_PER_SAMPLE * n_samples)
            else:
                block_steps(values, dual, tolerance)
            biases[step] = _bias(dual)
        for place in range(n_samples):
            found[step, place] = signed[place] = dual.signed[place]
            scores[place] = (1.0 if bounds[place] > 0.0 else -1.0) - dual.error[place]
        last = cost
    return found, biases


MIN_PER_SIDE = 2
MIN_GAIN = 1e-9
MIN_SQUARE = 1e-20


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
    return np.sqrt(square) if square > MIN_SQUARE else 1.0


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
    if len(plan.costs) == 1 or min(n_failing, n_right) < MIN_PER_SIDE:
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
        if totals[cost] / len(orders) >= best - plan.slack * error - MIN_GAIN:
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
    if n_failing < MIN_PER_SIDE or n_right < MIN_PER_SIDE:
        return 0.5
    scores = nested_scores(part, predictions, order_within(order, rows)[0], plan)
    inside, inside_scores, n_inside = np.empty(len(rows), np.bool_), np.empty(len(rows)), 0
    for place in range(len(rows)):
        if regions[rows[place]] == group:
            inside[n_inside], inside_scores[n_inside] = predictions[place], scores[place]
            n_inside += 1
    if n_inside - n_failed < MIN_PER_SIDE:
        return accuracy_of(predictions, scores, 0.0)
    return accuracy_of(inside[:n_inside], inside_scores[:n_inside], 0.0)


POWER_STEPS = 20
MEAN_STEPS = 20
MIN_SPREAD = 1e-9
MIN_TO_SPLIT = 2


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
        if length <= MIN_SPREAD:
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
        if n_first < 1.0 or n_first >= n_rows or spread <= MIN_SPREAD:
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
        found[place] = explained / spread if spread > MIN_SPREAD else 0.0
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
        if len(rows) < MIN_TO_SPLIT:
            continue
        is_first, explained, spread = two_means(gram, rows)
        if explained > best:
            best, share, chosen, leaving = (
                explained,
                explained / max(spread, MIN_SPREAD),
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
