"""The compiled solver of balanced linear SVMs: pair steps on the dual problem, along the path of the constant C.

The dual variable of a sample times its sign (+1 failed, -1 right) is called `signed`. It lies in [low, high], which is [0, bound]
for a failure and [-bound, 0] for the others, and all of them sum to zero. `error` is the sign minus the score without bias.
"""

from typing import NamedTuple

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray
from weakspot.discover.directions.products import compiled, gram_of, scores_along, weighted_sum

LEAST_CURVATURE = 1e-10
NEAR_BOUND = 1e-9
BLOCK = 512
STEPS_IN_BLOCK = 5_000
MAX_BLOCKS = 1_000
STEPS_PER_SAMPLE = 2_000
INNER_SHARE = 0.1
LEAST_BLOCK = 2
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
                    / max(row[first] + gram[place, place] - 2.0 * row[place], LEAST_CURVATURE)
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
    curvature = max(row[first] + other[second] - 2.0 * row[second], LEAST_CURVATURE)
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
        if violation < tolerance or len(block) < LEAST_BLOCK:
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
