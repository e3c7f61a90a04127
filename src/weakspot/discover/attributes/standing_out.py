"""Combinations of values that stand out from the rest of their class, and from each of their own shorter combinations."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, IntArray
from weakspot.core.combinations import Combinations
from weakspot.core.count_statistics import fisher_ps

LEAST_FAILURES = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class StandingOut:
    """The combinations of a class that passed.

    Args:
        places: [m] of the combinations among all that were counted.
        p_values: [m] Fisher's test against all other samples of the class.
        added_ps: [m] the largest p-value against any of their shorter combinations; `p_values` for single values.
    """

    places: IntArray
    p_values: DoubleArray
    added_ps: DoubleArray


def find_standing_out(
    found: Combinations, gaps: DoubleArray, *, min_gap: float, max_p: float, refine_p: float
) -> StandingOut:
    """Return the combinations with clearly more failures than the rest of the class, every value of which is needed.

    Args:
        found: all combinations of a class.
        gaps: [m] failure rate inside minus outside.
        min_gap: least gap.
        max_p: largest p-value against the rest of the class.
        refine_p: largest p-value against the rest of each shorter combination, times the values that could have been added to it.
    """
    places = np.flatnonzero((gaps >= min_gap) & (found.failed_inside >= LEAST_FAILURES))
    p_values = fisher_ps(
        found.failed_inside[places],
        found.n_inside[places],
        found.n_failed - found.failed_inside[places],
        found.n_samples - found.n_inside[places],
    )
    passed = p_values <= max_p
    places, p_values = places[passed], p_values[passed]
    added_ps = np.where(found.orders[places] == 1, p_values, 0.0)
    keys = _Keys(found)
    is_needed = np.ones(len(places), dtype=np.bool_)
    for dropped in range(found.attributes.shape[1]):
        is_longer = (found.orders[places] > max(dropped, 1)) & is_needed
        own = np.flatnonzero(is_longer)
        if not len(own):
            continue
        against, factor = _against_shorter(found, keys, places[own], dropped)
        is_needed[own] = against * factor <= refine_p
        added_ps[own] = np.maximum(against, added_ps[own])
    return StandingOut(
        places=places[is_needed], p_values=p_values[is_needed], added_ps=added_ps[is_needed]
    )


def _against_shorter(
    found: Combinations, keys: "_Keys", places: IntArray, dropped: int
) -> tuple[DoubleArray, AnyArray]:
    """Return p-values against the rest of the combination without one value, and how many values could have been added to it."""
    kept = [slot for slot in range(found.attributes.shape[1]) if slot != dropped]
    shorter = keys.places(found.attributes[places][:, kept], found.codes[places][:, kept])
    failed, n_inside = found.failed_inside[places], found.n_inside[places]
    p_values = fisher_ps(
        failed,
        n_inside,
        found.failed_inside[shorter] - failed,
        found.n_inside[shorter] - n_inside,
    )
    singles = found.attributes[found.orders == 1, 0]
    n_values = np.bincount(singles, minlength=int(found.attributes.max(initial=0)) + 1)
    used = np.where(
        found.attributes[shorter] >= 0, n_values[np.maximum(found.attributes[shorter], 0)], 0
    )
    return p_values, len(singles) - used.sum(axis=1)


class _Keys:
    """Finds combinations by their values."""

    def __init__(self, found: Combinations) -> None:
        self._n_codes = int(found.codes.max(initial=0)) + 1
        self._n_values = (int(found.attributes.max(initial=0)) + 1) * self._n_codes + 1
        keys = self._of(found.attributes, found.codes)
        self._order = np.argsort(keys, kind="stable")
        self._sorted = keys[self._order]

    def _of(self, attributes: AnyArray, codes: AnyArray) -> IntArray:
        values = np.where(
            attributes >= 0, attributes.astype(np.int64) * self._n_codes + codes + 1, 0
        )
        keys = np.zeros(len(values), dtype=np.int64)
        for slot in range(values.shape[1]):
            keys = keys * self._n_values + values[:, slot]
        return keys

    def places(self, attributes: AnyArray, codes: AnyArray) -> IntArray:
        """Return where combinations of at most two values [m, 2], the first slots first, are among all."""
        unused = np.full((len(attributes), 1), -1, dtype=np.int64)
        keys = self._of(
            np.concatenate([attributes, unused], axis=1), np.concatenate([codes, unused], axis=1)
        )
        return self._order[np.searchsorted(self._sorted, keys)]


def absent_codes(values: tuple[str, ...], codes: AnyArray) -> BoolArray:
    """Return for every code of a column [len(values) + 1] whether it says that something is not there.

    A word for no does; without one, the more frequent of two values does.

    >>> absent_codes(("no", "yes"), np.array([1, 2, 2])).tolist(), absent_codes(("a", "b"), np.array([1, 2, 2])).tolist()
    ([False, True, False], [False, False, True])
    """
    words = [value.strip().lower().replace("_", " ") for value in values]
    found = np.array([False, *(_says_no(word) for word in words)])
    if len(values) == 2 and not found.any():  # noqa: PLR2004 - a column of two values
        counts = np.bincount(codes[codes > 0], minlength=3)
        found[1 + int(np.argmax(counts[1:]))] = counts[1] != counts[2]
    return found


NO_WORDS = frozenset(
    {"no", "false", "0", "0.0", "none", "absent", "without", "n", "f", "off", "not", "never"}
)


def _says_no(word: str) -> bool:
    return word in NO_WORDS or word.startswith(("no ", "not ", "without ", "non-"))
