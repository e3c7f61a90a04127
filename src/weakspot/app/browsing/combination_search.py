"""The order in which combinations are shown, and which of very many are worth it."""

import numpy as np
from scipy.special import ndtri

from weakspot.core.arrays import DoubleArray, IntArray
from weakspot.core.combinations import Combinations

LEVEL = 0.95


def lower_ends(failed: IntArray, total: IntArray) -> DoubleArray:
    """Return the lower end of Wilson's interval of every rate [m]; the same figures as `core.statistics.wilson_interval`.

    >>> lower_ends(np.array([8]), np.array([10])).round(4).tolist()
    [0.4902]
    """
    quantile = float(ndtri(0.5 + LEVEL / 2))
    rates, squares = failed / total, quantile**2 / total
    spread = quantile * np.sqrt(rates * (1.0 - rates) / total + squares / (4.0 * total))
    return np.where(failed == 0, 0.0, (rates + squares / 2.0 - spread) / (1.0 + squares))


def worst_first(found: Combinations) -> list[int]:
    """Return the places of all combinations, highest lower end first; of equals the shorter and then the larger one."""
    if not len(found):
        return []
    ends = np.round(lower_ends(found.failed_inside, found.n_inside), 9)
    order: list[int] = np.lexsort((-found.n_inside, found.orders, -ends)).tolist()
    return order


def worth_showing(found: Combinations, most: int) -> list[int]:
    """Return the places of the worst combinations, without those to which one of their values adds nothing.

    A single value fails more often than the whole; a further one adds something if even the lower end of the rate with it lies
    above the rate without it.
    """
    if not len(found):
        return []
    ends = lower_ends(found.failed_inside, found.n_inside)
    rates = found.failed_inside / found.n_inside
    keys = _keys(found)
    sorter = np.argsort(keys)
    adds = rates > found.n_failed / max(found.n_samples, 1)
    for dropped in range(found.attributes.shape[1]):
        with_more = np.flatnonzero((found.orders > 1) & (found.attributes[:, dropped] >= 0))
        if len(with_more):
            parents = sorter[np.searchsorted(keys, _keys(found, dropped=dropped)[with_more], sorter=sorter)]
            adds[with_more] &= ends[with_more] > rates[parents]
    places = np.flatnonzero(adds)
    order = np.lexsort((-found.n_inside[places], found.orders[places], -np.round(ends[places], 9)))
    shown: list[int] = places[order][:most].tolist()
    return shown


def _keys(found: Combinations, *, dropped: int | None = None) -> IntArray:
    """Return a number for every combination, as it is or without one of its values."""
    base = (int(found.attributes.max(initial=0)) + 1) * (int(found.codes.max(initial=0)) + 1) + 1
    width = int(found.codes.max(initial=0)) + 1
    pairs = np.where(found.attributes >= 0, found.attributes.astype(np.int64) * width + found.codes + 1, 0)
    if dropped is not None:
        kept = [place for place in range(pairs.shape[1]) if place != dropped]
        pairs = np.concatenate([pairs[:, kept], np.zeros((len(pairs), 1), dtype=np.int64)], axis=1)
    return np.asarray((pairs[:, 0] * base + pairs[:, 1]) * base + pairs[:, 2], dtype=np.int64)
