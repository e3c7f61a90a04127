"""Compiled loops of core: tables of counts, dealt scores and folds.

Imported on first use only, because that loads the compiler.
"""

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, IntArray
from weakspot.core.compiled import kernel

NEGLIGIBLE = 1e-17


@kernel(error_model="numpy")
def fisher_tails(
    failures_inside: IntArray,
    n_inside: IntArray,
    n_failed: IntArray,
    n_samples: IntArray,
    order: IntArray,
    found: DoubleArray,
) -> None:
    """Write Fisher's one-sided p-value of every table.

    Args:
        failures_inside: [m].
        n_inside: [m] samples inside.
        n_failed: failures in all; [m], or [1] if all tables have the same.
        n_samples: samples in all; as many as failures in all.
        order: [m] places of tables, those with equal margins next to each other.
        found: [m] where to write.
    """
    longest, step = 1, int(len(n_failed) > 1)
    for place in range(len(n_inside)):
        longest = max(longest, min(n_inside[place], n_failed[place * step]) + 2)
    chances = np.zeros(longest)
    start = 0
    while start < len(order):
        first = order[start]
        inside, failed, samples = n_inside[first], n_failed[first * step], n_samples[first * step]
        stop, largest = start, 0
        while stop < len(order):
            place = order[stop]
            if (
                n_inside[place] != inside
                or n_failed[place * step] != failed
                or n_samples[place * step] != samples
            ):
                break
            largest = max(largest, failures_inside[place])
            stop += 1
        low, high, whole = _sum_tails(inside, failed, samples, largest, chances)
        for slot in range(start, stop):
            count = failures_inside[order[slot]]
            found[order[slot]] = (
                1.0 if count <= low else (0.0 if count > high else min(1.0, chances[count] / whole))
            )
        start = stop


@kernel(error_model="numpy")
def _sum_tails(
    n_inside: int, n_failed: int, n_samples: int, largest: int, chances: DoubleArray
) -> tuple[int, int, float]:
    """Sum the upper tails of one hypergeometric law, in units of the chance of its mode.

    Terms follow from ratios of neighbours, so nothing cancels however large the counts are; the sums run from the thin end, so
    small tails keep their digits.

    Args:
        n_inside: samples inside.
        n_failed: failures in all.
        n_samples: samples in all.
        largest: the largest number of failures inside that is asked for.
        chances: where the tails are written, by number of failures inside.

    Returns:
        The numbers of failures from and up to which tails were written, and the sum of all terms; from there down a tail is 1.
    """
    n_outside = n_samples - n_inside
    least, most = max(0, n_failed - n_outside), min(n_failed, n_inside)
    mode = min(max((n_inside + 1) * (n_failed + 1) // (n_samples + 2), least), most)
    shift = n_outside - n_failed
    chances[mode] = 1.0
    high, term, asked = mode, 1.0, 1.0
    while high < most:
        ratio = (float(n_inside - high) * float(n_failed - high)) / (
            float(high + 1) * float(shift + high + 1)
        )
        term *= ratio
        high += 1
        chances[high] = term
        if high <= largest:
            asked = term
        elif term <= NEGLIGIBLE * asked * (1.0 - ratio):
            break
        if term == 0.0:
            break
    low, term, total = mode, 1.0, 1.0
    while low > least:
        ratio = (float(low) * float(shift + low)) / (
            float(n_inside - low + 1) * float(n_failed - low + 1)
        )
        term *= ratio
        low -= 1
        chances[low] = term
        total += term
        if term <= NEGLIGIBLE * total * (1.0 - ratio):
            break
    tail = 0.0
    for count in range(high, low - 1, -1):
        tail += chances[count]
        chances[count] = tail
    return low, high, tail


@kernel()
def deal(
    uniforms: DoubleArray,
    order: IntArray,
    bins: IntArray,
    scores: DoubleArray,
    entries: tuple[IntArray, IntArray, DoubleArray],
    sums: DoubleArray,
) -> None:
    """Put scores that are not zero on groups drawn without replacement, and add them up for every membership.

    Args:
        uniforms: [b, f] numbers in [0, 1), one for every score of every draw.
        order: [g] groups, those of a bin beside each other; is shuffled, and any order is as good to begin with.
        bins: [k, 4] first and last+1 place in `order`, and in `scores`, of every bin.
        scores: [f] not zero, those of a bin beside each other.
        entries: where the memberships of every group start [g + 1]; which membership [e], and how much of the group it has [e].
        sums: [b, m] zeros, where the sums are written.
    """
    starts, numbers, shares = entries
    for draw in range(uniforms.shape[0]):
        for one in range(len(bins)):
            first, last = bins[one, 0], bins[one, 1]
            for place in range(bins[one, 3] - bins[one, 2]):
                number = bins[one, 2] + place
                here = first + place
                there = here + int(uniforms[draw, number] * (last - here))
                order[here], order[there] = order[there], order[here]
                for entry in range(starts[order[here]], starts[order[here] + 1]):
                    sums[draw, numbers[entry]] += scores[number] * shares[entry]


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
