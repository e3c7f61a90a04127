"""Axes of charts: round numbers, and where values are."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Axis:
    """Where values are along a length in pixels.

    Args:
        low: the value at the start.
        high: the value at the end.
        length: from start to end, in pixels.
        ticks: values to mark, and how they are written.
        is_log: whether equal steps are equal factors.
    """

    low: float
    high: float
    length: float
    ticks: tuple[tuple[float, str], ...]
    is_log: bool = False

    @classmethod
    def of_factors(cls, values: Sequence[float], length: float) -> "Axis":
        """Return an axis from the smallest value to the largest, on which equal steps are equal factors."""
        known = sorted(set(values)) or [1.0]
        low, high = known[0], known[-1]
        ends = (low, high) if high > low else (low / 2, high * 2)
        return cls(
            low=ends[0],
            high=ends[1],
            length=length,
            ticks=tuple((one, f"{one:g}") for one in known),
            is_log=True,
        )

    @classmethod
    def around(cls, values: Sequence[float], length: float) -> "Axis":
        """Return an axis from one round number to another that holds all values."""
        known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
        low, high = min(known), max(known)
        if high - low <= 1e-9 * max(abs(low), abs(high), 1.0):
            low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
        rough = (high - low) / 5
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * times for times in (1, 2, 5, 10) if power * times >= rough * (1 - 1e-9))
        start, end = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        shown = [
            round(start + number * step, digits)
            for number in range(round((end - start) / step) + 1)
        ]
        # Adding zero turns a negative zero, which would be written with a sign, into a plain one.
        ticks = tuple((one, f"{one + 0.0:.{digits}f}") for one in shown)
        return cls(low=start, high=end, length=length, ticks=ticks)

    def place(self, value: float) -> float:
        low, high, here = (
            map(math.log, (self.low, self.high, value))
            if self.is_log
            else (self.low, self.high, value)
        )
        return self.length * (here - low) / (high - low)
