"""Figures of one arm on one unit of an experiment, and what they come to over all units."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from pydantic import Field

from weakspot.core.arrays import DoubleArray, generator
from weakspot.core.record import Record

RESAMPLES = 4_000
TAIL = 0.025


class Figures(Record):
    """What one arm reached on one unit.

    Args:
        unit: a world, a run, a hidden kind with a seed; what is averaged over.
        part: which table of the experiment it belongs to.
        arm: way of retraining.
        values: measured numbers by name; accuracies and changes lie in -1 to 1.
        note: why there are none, or what to know.
    """

    unit: str
    part: str
    arm: str
    values: dict[str, float] = Field(default_factory=dict)
    note: str = ""


class Average(Record):
    """Mean over units.

    Args:
        mean: the mean.
        low: lower end of the bootstrap interval, 95 %.
        high: upper end.
        error: standard error.
        n_units: over how many.
    """

    mean: float
    low: float
    high: float
    error: float
    n_units: int

    @property
    def is_above_zero(self) -> bool:
        """Return whether the whole interval lies above zero."""
        return self.low > 0


def average(values: Sequence[float] | DoubleArray) -> Average | None:
    """Return the mean with an interval by the bootstrap over units; None without values."""
    numbers = np.asarray(values, dtype=np.float64)
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return None
    draws = generator(0, "repair results", str(len(numbers))).integers(
        0, len(numbers), (RESAMPLES, len(numbers))
    )
    low, high = np.quantile(numbers[draws].mean(axis=1), [TAIL, 1 - TAIL])
    error = float(numbers.std(ddof=1) / np.sqrt(len(numbers))) if len(numbers) > 1 else float("nan")
    return Average(
        mean=float(numbers.mean()),
        low=float(low),
        high=float(high),
        error=error,
        n_units=len(numbers),
    )


def by_unit(figures: Iterable[Figures], part: str, arm: str, name: str) -> dict[str, float]:
    """Return one number a unit."""
    return {
        one.unit: one.values[name]
        for one in figures
        if (one.part, one.arm) == (part, arm) and name in one.values
    }


def paired(first: dict[str, float], second: dict[str, float]) -> Average | None:
    """Return the mean difference of two arms over the units that both have."""
    return average([first[unit] - second[unit] for unit in first if unit in second])


def in_order(figures: Iterable[Figures], key: Callable[[Figures], str]) -> tuple[str, ...]:
    """Return the different keys in the order in which they first come."""
    return tuple(dict.fromkeys(key(one) for one in figures))
