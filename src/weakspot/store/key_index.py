"""Finding content hashes among very many: linear in memory, with a small number of bytes a key and no Python objects."""

import numpy as np

from weakspot.core.arrays import AnyArray, IntArray

SEARCHED_AT_ONCE = 1 << 20
ODD = np.uint64(0x9E3779B97F4A7C15)


class KeyIndex:
    """Known keys in an order in which others can be looked up; 12 to 16 bytes a key beside the keys themselves.

    Args:
        known: packed content hashes [n]; of a key that occurs twice the first place is found.
    """

    def __init__(self, known: AnyArray) -> None:
        self._known = _halves(known)
        mixed = _mixed(self._known)
        order = np.argsort(mixed, kind="stable")
        self._order = order.astype(np.int32) if len(order) < np.iinfo(np.int32).max else order
        self._mixed = mixed[order]

    def positions(self, keys: AnyArray) -> IntArray:
        """Return for every key [m] its place among the known ones, or -1."""
        found = np.full(len(keys), -1, dtype=np.int64)
        for start in range(0, len(keys) if len(self._known) else 0, SEARCHED_AT_ONCE):
            part = slice(start, start + SEARCHED_AT_ONCE)
            found[part] = self._positions(_halves(keys[part]))
        return found

    def _positions(self, keys: AnyArray) -> IntArray:
        mixed, last = _mixed(keys), len(self._mixed) - 1
        slots = np.empty(len(keys), dtype=np.int64)
        # Looked up in ascending order, neighbours are found in memory that was just read.
        ascending = np.argsort(mixed)
        slots[ascending] = np.searchsorted(self._mixed, mixed[ascending])
        found = np.full(len(keys), -1, dtype=np.int64)
        open_ones = np.flatnonzero(slots <= last)
        # Different keys hardly ever mix to the same number; those that do stand next to each other.
        while len(open_ones):
            open_ones = open_ones[self._mixed[slots[open_ones]] == mixed[open_ones]]
            places = self._order[slots[open_ones]]
            is_same = (self._known[places] == keys[open_ones]).all(axis=1)
            found[open_ones[is_same]] = places[is_same]
            open_ones = open_ones[~is_same]
            slots[open_ones] += 1
            open_ones = open_ones[slots[open_ones] <= last]
        return found


def _halves(keys: AnyArray) -> AnyArray:
    return np.ascontiguousarray(keys).view(np.uint64).reshape(-1, 2)


def _mixed(halves: AnyArray) -> AnyArray:
    with np.errstate(over="ignore"):
        return np.asarray(halves[:, 0] ^ (halves[:, 1] * ODD))
