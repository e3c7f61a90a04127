"""Intervals that hold for every subject of a rule at once.

A rule that is put to many subjects would be violated somewhere by chance. So every interval is as wide as Bonferroni's inequality
asks for, counting everything that was tested on the same samples, also what was not chosen: confirmed slices are the worst of many.
"""

from math import sqrt

from weakspot.core.evidence import Interval
from weakspot.core.statistics import change_interval, exact_interval


def shared_level(level: float, n_subjects: int) -> float:
    """Return the level that each of several intervals needs so that all of them hold together.

    >>> round(shared_level(0.95, 5), 4)
    0.99
    """
    return 1.0 - (1.0 - level) / max(n_subjects, 1)


def accuracy_interval(n_failed: int, n_samples: int, *, level: float) -> Interval:
    """Return the exact interval of an accuracy (Clopper and Pearson)."""
    low, high = exact_interval(n_samples - n_failed, n_samples, level=level)
    return Interval(low=low, high=high, level=level)


def gap_interval(table: tuple[int, int, int, int], *, level: float) -> Interval:
    """Return the interval of a difference of two failure rates, put together from the exact intervals of both (after Newcombe).

    Args:
        table: failures and samples inside, failures and samples outside.
        level: of the interval.
    """
    failed_inside, n_inside, failed_outside, n_outside = table
    inside, outside = (failed_inside / n_inside if n_inside else 0.0, failed_outside / n_outside if n_outside else 0.0)
    low_in, high_in = exact_interval(failed_inside, n_inside, level=level)
    low_out, high_out = exact_interval(failed_outside, n_outside, level=level)
    gap = inside - outside
    low = gap - sqrt((inside - low_in) ** 2 + (high_out - outside) ** 2)
    high = gap + sqrt((high_in - inside) ** 2 + (outside - low_out) ** 2)
    return Interval(low=max(-1.0, low), high=min(1.0, high), level=level)


def paired_interval(gained: int, lost: int, n_samples: int, *, level: float) -> Interval:
    """Return the interval of a change of accuracy on the same samples."""
    low, high = change_interval(gained, lost, n_samples, level=level)
    return Interval(low=low, high=high, level=level)
