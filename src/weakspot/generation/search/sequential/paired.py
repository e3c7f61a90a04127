"""A change of a rate on pairs that arrive one after the other: intervals and p-values that hold however often more are asked for.

Every pair says +1 (fails only with the change), -1 (only without) or 0. For every possible mean m there are bets with fixed stakes on
both sides of it; each pays 1 on average if m is the mean, and so does their average. By Ville's inequality it exceeds 1/alpha at
any time at all with a chance of at most alpha. The interval is every m that the bets leave over; the p-value is what the bets
against 0 have paid, inverted. Only counts enter, so a longer series goes on where a shorter one of the same places ended.

Several images of one object are not independent, and an object may come again later. So every object has one pair, its first.
"""

from collections.abc import Hashable, Sequence
from math import exp, log

import numpy as np

from weakspot.core.errors import InputError

N_STAKES = 12
SMALLEST_STAKE = 0.1
LARGEST_STAKE = 0.95
HALVINGS = 40
_STAKES = np.linspace(SMALLEST_STAKE, LARGEST_STAKE, N_STAKES)

Pair = tuple[bool, bool]


def first_pairs(
    before: Sequence[bool | None],
    after: Sequence[bool | None],
    parents: Sequence[Hashable] | None = None,
) -> list[Pair]:
    """Return the first pair of every parent, in the order of places; every place is its own parent if none are given.

    >>> first_pairs([False, False, None, True], [True, False, True, True], ["a", "a", "b", "c"])
    [(False, True), (True, True)]
    """
    names: Sequence[Hashable] = range(len(before)) if parents is None else parents
    found: dict[Hashable, Pair] = {}
    for name, one, other in zip(names, before, after, strict=True):
        if one is not None and other is not None:
            found.setdefault(name, (one, other))
    return list(found.values())


def change_p(gained: int, lost: int, n_pairs: int) -> float:
    """Return a two-sided p-value of "no change" that may be looked at after every pair.

    >>> round(change_p(12, 0, 20), 4), change_p(2, 2, 20)
    (0.0032, 1.0)
    """
    _refuse(gained, lost, n_pairs)
    return min(1.0, exp(-_log_bet(gained, lost, n_pairs, 0.0)))


def sequential_change_interval(
    gained: int, lost: int, n_pairs: int, *, level: float = 0.95
) -> tuple[float, float]:
    """Return an interval of the mean change that holds at all times at once; (-1, 1) without pairs.

    >>> low, high = sequential_change_interval(12, 0, 20)
    >>> 0 < low < 0.6 < high < 1
    True
    """
    _refuse(gained, lost, n_pairs)
    limit = -log(1.0 - level)
    if not n_pairs:
        return -1.0, 1.0
    return _edge((gained, lost, n_pairs), limit, -1.0), _edge((gained, lost, n_pairs), limit, 1.0)


def _edge(counts: tuple[int, int, int], limit: float, outside: float) -> float:
    """Return where the bets reach the limit between the observed change and an end; rounded outwards."""
    gained, lost, n_pairs = counts
    inside, end = (gained - lost) / n_pairs, outside
    if inside == end:
        return end
    for _ in range(HALVINGS):
        middle = 0.5 * (outside + inside)
        is_left = _log_bet(gained, lost, n_pairs, middle) < limit
        outside, inside = (outside, middle) if is_left else (middle, inside)
    return outside


def _log_bet(gained: int, lost: int, n_pairs: int, mean: float) -> float:
    same = n_pairs - gained - lost
    stakes = np.concatenate([_STAKES / (1.0 + mean), -_STAKES / (1.0 - mean)])
    paid = (
        gained * np.log1p(stakes * (1.0 - mean))
        + lost * np.log1p(-stakes * (1.0 + mean))
        + same * np.log1p(-stakes * mean)
    )
    largest = float(paid.max())
    return largest + log(float(np.mean(np.exp(paid - largest))))


def _refuse(gained: int, lost: int, n_pairs: int) -> None:
    if min(gained, lost) < 0 or gained + lost > n_pairs:
        raise InputError("Counts must satisfy 0 <= gained + lost <= pairs.", given=(gained, lost))
