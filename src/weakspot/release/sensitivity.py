"""What a comparison could have seen: the smallest fall of accuracy that these samples show in four of five cases."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np

from weakspot.core.arrays import DoubleArray
from weakspot.release.fall_tests import ADDED_NOISE

POWER = 0.8
HALVINGS = 14
REACH = 6.0
MOST_SAMPLES = 10_000_000


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """One subject, as far as it decides what can be seen.

    Args:
        n_samples: that count on their own.
        gain_rate: share of samples that are gained whether or not accuracy falls.
        margin: the fall that is let pass.
        share_of: the part of the error rate that the subject has if so many samples changed.
    """

    n_samples: float
    gain_rate: float
    margin: float
    share_of: Callable[[float], float]


def fall_power(one: Comparison, fall: float) -> float:
    """Return how often a fall of this size would be flagged on such samples.

    >>> fixed = Comparison(n_samples=100, gain_rate=0.05, margin=0.0, share_of=lambda changed: 0.05)
    >>> round(fall_power(fixed, 0.1), 2)
    0.74
    """
    from scipy.special import betainc, gammaln, ndtri, xlogy

    n_samples = round(one.n_samples)
    lost = min(one.gain_rate + fall, 1.0 - one.gain_rate)
    changing = one.gain_rate + lost
    if n_samples < 1 or changing <= 0.0:
        return 0.0
    counts = _likely_counts(n_samples, changing)
    level = float(np.clip(one.share_of(n_samples * changing), 1e-12, 0.5))
    allowance = one.margin * n_samples
    least = allowance - float(ndtri(level)) * np.sqrt(
        np.maximum(counts + ADDED_NOISE * allowance, 1.0)
    )
    needed = np.maximum(np.ceil((counts + least) / 2.0 - 1e-9), 1.0)
    seen = betainc(needed, np.maximum(counts - needed, 0.0) + 1.0, lost / changing)
    seen = np.where(needed > counts, 0.0, seen)
    chances = np.exp(
        gammaln(n_samples + 1.0)
        - gammaln(counts + 1.0)
        - gammaln(n_samples - counts + 1.0)
        + xlogy(counts, changing)
        + xlogy(n_samples - counts, 1.0 - changing)
    )
    return float(np.sum(chances * seen))


def smallest_fall(one: Comparison, *, power: float = POWER) -> float | None:
    """Return the smallest fall that would be flagged with this power; None if these samples show none at all."""
    low, high = one.margin, 1.0 - one.gain_rate
    if fall_power(one, high) < power:
        return None
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if fall_power(one, middle) >= power else (middle, high)
    return high


def samples_needed(one: Comparison, fall: float, *, power: float = POWER) -> int | None:
    """Return about how many samples would show a fall of this size with this power; None if it lies within the margin."""
    if fall <= one.margin:
        return None
    level = one.share_of(one.n_samples * (2.0 * one.gain_rate + fall))
    low, high = 0, 1
    while high < MOST_SAMPLES and not _shows(one, high, level, fall, power):
        low, high = high, 2 * high
    if high >= MOST_SAMPLES:
        return None
    while high - low > max(1, high // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if _shows(one, middle, level, fall, power) else (middle, high)
    return ceil(high / 10) * 10


def _shows(one: Comparison, n_samples: int, level: float, fall: float, power: float) -> bool:
    larger = Comparison(
        n_samples=n_samples,
        gain_rate=one.gain_rate,
        margin=one.margin,
        share_of=lambda changed: level if changed >= 0 else 0.0,
    )
    return fall_power(larger, fall) >= power


def _likely_counts(n_samples: int, changing: float) -> DoubleArray:
    middle = n_samples * changing
    reach = REACH * sqrt(max(middle, 1.0))
    return np.arange(
        max(0.0, np.floor(middle - reach)), min(float(n_samples), np.ceil(middle + reach)) + 1.0
    )
