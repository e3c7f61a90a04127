"""Means over units (worlds, seeds, classes), with intervals by the bootstrap over units."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from typing import Any

import numpy as np

from weakspot.core.arrays import generator
from weakspot_lab.reproduce.figures import Measured

RESAMPLES = 2000
TAIL = 0.025


@dataclass(frozen=True, kw_only=True)
class Average:
    """A mean over units.

    Args:
        mean: the mean; NaN without units.
        low: lower end of the interval, 95 %; of two units the smaller one; None with fewer.
        high: upper end.
        n_units: how many units.
    """

    mean: float
    low: float | None
    high: float | None
    n_units: int


FEWEST = 3


def average(values: Sequence[float]) -> Average:
    """Return the mean of the finite values, with an interval.

    >>> average([1.0, 2.0, 3.0]).mean
    2.0
    """
    numbers = np.asarray([one for one in values if np.isfinite(one)], dtype=np.float64)
    if not len(numbers):
        return Average(mean=float("nan"), low=None, high=None, n_units=0)
    if len(numbers) == 1:
        return Average(mean=float(numbers[0]), low=None, high=None, n_units=1)
    if len(numbers) < FEWEST:
        low, high = float(numbers.min()), float(numbers.max())
        return Average(mean=float(numbers.mean()), low=low, high=high, n_units=len(numbers))
    draws = generator(0, "reproduce", "average", str(len(numbers))).integers(
        0, len(numbers), (RESAMPLES, len(numbers))
    )
    low, high = np.quantile(numbers[draws].mean(axis=1), [TAIL, 1 - TAIL])
    return Average(
        mean=float(numbers.mean()), low=float(low), high=float(high), n_units=len(numbers)
    )


def gain(first: Sequence[float], second: Sequence[float]) -> Average:
    """Return the mean of first minus second over the same units, with an interval."""
    return average([one - other for one, other in zip(first, second, strict=True)])


def mean_of(values: Sequence[float], **words: Any) -> Measured:
    """Return a mean with its interval."""
    found = average(values)
    return Measured(value=found.mean, low=found.low, high=found.high, **words)


def percents(rows: Iterable[Mapping[str, Any]], path: str) -> list[float]:
    """Return a field of every row in %: a list counts with its mean, and what is not known is NaN.

    >>> percents([{"orders": {"svm": [0.5, 1.0]}}], "orders/svm")
    [75.0]
    """
    fields: list[Any] = [reduce(getitem, path.split("/"), row) for row in rows]
    return [float("nan") if one is None else 100.0 * float(np.mean(one)) for one in fields]


def against(mine: Sequence[float], theirs: Sequence[float], name: str, **words: Any) -> Measured:
    """Return a mean compared, unit by unit, with what stands beside it."""
    between = gain(mine, theirs)
    beside = {"beside": average(theirs).mean, "beside_name": name}
    return mean_of(mine, **beside, gain_low=between.low, gain_high=between.high, **words)
