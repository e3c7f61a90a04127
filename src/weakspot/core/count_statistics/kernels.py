"""Compiled loops over tables of counts; imported on first use only."""

import numpy as np

from weakspot.core.arrays import DoubleArray, IntArray
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
