"""The same numbers as `weakspot.core.statistics` gives for one table, for millions."""

import numpy as np

from weakspot.core.arrays import AnyArray, DoubleArray, IntArray
from weakspot.core.errors import InputError


def wilson_intervals(
    successes: AnyArray, trials: AnyArray, *, level: float = 0.95
) -> tuple[DoubleArray, DoubleArray]:
    """Return the lower and upper ends of Wilson's score intervals [m]; 0 and 1 without trials.

    >>> low, high = wilson_intervals(np.array([8, 0]), np.array([10, 0]))
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.4902, 0.0], [0.9433, 1.0])
    """
    from scipy.special import ndtri

    counts, totals = (np.asarray(values) for values in np.broadcast_arrays(successes, trials))
    _refuse_counts(counts, totals)
    if not 0.0 < level < 1.0:
        raise InputError("A confidence level must lie in (0, 1).", given=level)
    quantile = float(ndtri(0.5 + level / 2))
    square = quantile**2
    sizes = np.maximum(totals, 1).astype(np.float64)
    rates = counts / sizes
    middles = rates + square / (2 * sizes)
    spreads = quantile * np.sqrt(rates * (1 - rates) / sizes + square / (4 * sizes**2))
    widths = 1 + square / sizes
    lows = np.where(counts == 0, 0.0, (middles - spreads) / widths)
    return lows, np.where(counts == totals, 1.0, (middles + spreads) / widths)


def mcnemar_ps(gained: AnyArray, lost: AnyArray) -> DoubleArray:
    """Return McNemar's exact two-sided p-values [m]: that samples are as often gained as lost.

    >>> mcnemar_ps(np.array([5, 2]), np.array([0, 2])).tolist()
    [0.0625, 1.0]
    """
    from scipy.special import bdtr

    more, less = np.maximum(gained, lost), np.minimum(gained, lost)
    _refuse_counts(less, more)
    return np.asarray(
        np.where(more == less, 1.0, np.minimum(1.0, 2.0 * bdtr(less, more + less, 0.5))),
        dtype=np.float64,
    )


def fisher_ps(
    failures_inside: AnyArray, n_inside: AnyArray, failures_outside: AnyArray, n_outside: AnyArray
) -> DoubleArray:
    """Return Fisher's exact one-sided p-values [m]: that failures are no more frequent inside than outside.

    Args:
        failures_inside: [m], or one number for all; so are the others.
        n_inside: samples inside.
        failures_outside: failures outside.
        n_outside: samples outside.

    >>> fisher_ps(np.array([3, 4]), 4, np.array([1, 0]), 4).round(6).tolist()
    [0.242857, 0.014286]
    """
    from weakspot.core.count_statistics.kernels import fisher_tails

    given = np.broadcast_arrays(failures_inside, n_inside, failures_outside, n_outside)
    inside, sizes, outside, sizes_outside = (
        np.asarray(values, dtype=np.int64).ravel() for values in given
    )
    _refuse_counts(inside, sizes)
    _refuse_counts(outside, sizes_outside)
    n_failed, n_samples, found = inside + outside, sizes + sizes_outside, np.empty(len(inside))
    # Tables with the same margins share one law. Nearly always all tables are about the same samples and failures.
    if len(inside) and np.ptp(n_failed) == 0 and np.ptp(n_samples) == 0:
        fisher_tails(inside, sizes, n_failed[:1], n_samples[:1], _order_of(sizes), found)
    else:
        fisher_tails(
            inside, sizes, n_failed, n_samples, np.lexsort((sizes, n_failed, n_samples)), found
        )
    return found


def _order_of(sizes: IntArray) -> IntArray:
    # Numbers of two bytes are sorted several times faster.
    is_short = sizes.max() <= np.iinfo(np.uint16).max
    return np.argsort(sizes.astype(np.uint16), kind="stable") if is_short else np.argsort(sizes)


def _refuse_counts(counts: AnyArray, totals: AnyArray) -> None:
    is_wrong = (counts < 0) | (counts > totals)
    if np.any(is_wrong):
        place = int(np.flatnonzero(is_wrong.ravel())[0])
        raise InputError(
            "Counts must satisfy 0 <= successes <= trials.",
            given=(int(counts.ravel()[place]), int(totals.ravel()[place])),
        )
