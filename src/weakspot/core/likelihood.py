"""How much more likely numbers of failures are where members fail more often than where they do not."""

import numpy as np

from weakspot.core.arrays import DoubleArray, IntArray

GAPS = (0.025, 0.05, 0.1, 0.2, 0.4)
"""Differences of failure rates that are thought of, all alike."""
LEAST_RATE = 0.01
LARGEST_RATE = 0.97
IMPOSSIBLE = -700.0


def log_ratios(sizes: IntArray, n_samples: int, n_failed: int) -> DoubleArray:
    """Return the logarithm [m, k] of how many times more likely 0, 1, ... failures inside are with a gap than without.

    Both totals are fixed, as where failures are dealt out anew. The average over the gaps prefers memberships in which a gap of
    ordinary size would show, where the smallest p-value prefers none.

    Args:
        sizes: members [m].
        n_samples: members and others together.
        n_failed: failures among all.

    >>> ratios = np.exp(log_ratios(np.array([10]), 100, 10))[0]
    >>> bool(ratios[0] < 1 < ratios[3] < ratios[4])
    True
    """
    counts = np.arange(min(n_failed, int(sizes.max())) + 1)[None, :]
    inside = np.asarray(sizes, dtype=np.int64)[:, None]
    chances = log_chances(inside, counts, n_samples, n_failed)
    total = np.full(chances.shape, -np.inf)
    for gap in GAPS:
        rest = np.clip((n_failed - gap * inside) / n_samples, LEAST_RATE, LARGEST_RATE)
        worse = np.clip(rest + gap, LEAST_RATE, LARGEST_RATE)
        tilt = counts * (np.log(worse / (1.0 - worse)) - np.log(rest / (1.0 - rest)))
        total = np.logaddexp(total, tilt - _log_sum(chances + tilt))
    return np.where(np.isfinite(chances), total - np.log(len(GAPS)), IMPOSSIBLE)


def log_chances(inside: IntArray, counts: IntArray, n_samples: int, n_failed: int) -> DoubleArray:
    """Return the logarithm of the hypergeometric chance of so many failures inside; minus infinity where it cannot be."""
    from scipy.special import gammaln

    parts = np.broadcast_arrays(
        counts, inside - counts, n_failed - counts, n_samples - inside - n_failed + counts
    )
    is_possible = np.all(np.stack(parts) >= 0, axis=0)
    logs = -gammaln(np.maximum(np.stack(parts), 0) + 1.0).sum(axis=0)
    logs = np.where(is_possible, logs, -np.inf)
    return np.asarray(logs - _log_sum(logs), dtype=np.float64)


def _log_sum(logs: DoubleArray) -> DoubleArray:
    largest = logs.max(axis=1, keepdims=True)
    return np.asarray(largest + np.log(np.exp(logs - largest).sum(axis=1, keepdims=True)))
