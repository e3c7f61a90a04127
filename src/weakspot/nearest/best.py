"""The best k of rows whose scores are known only within bounds: whoever could be among them is kept, and decided at the end."""

import threading
from collections.abc import Callable

import numpy as np

from weakspot.core.arrays import AnyArray, DoubleArray, FloatArray, IntArray

MOST_CANDIDATES = 65_536
FEW_NEW = 1024

Exact = Callable[[IntArray], DoubleArray]


class BestRows:
    """Takes rows in any order and from any thread; which are the best does not depend on either.

    Args:
        n_wanted: how many rows are looked for.
        exact: rows to their exact scores; NaN for those that must not be found.
    """

    def __init__(self, n_wanted: int, exact: Exact) -> None:
        self.floor = -np.inf
        self._n_wanted = n_wanted
        self._most = max(MOST_CANDIDATES, 4 * n_wanted)
        self._exact = exact
        self._lock = threading.Lock()
        self._rows: IntArray = np.empty(0, dtype=np.int64)
        self._low: DoubleArray = np.empty(0)
        self._high: DoubleArray = np.empty(0)
        self._new: list[tuple[IntArray, DoubleArray, DoubleArray]] = []
        self._n_new = 0

    def offer(self, scores: FloatArray, slack: FloatArray, offset: int) -> None:
        """Take rows with rough scores [n], off by at most so much [n]; their numbers begin at `offset`. NaN is no row."""
        places = np.flatnonzero(scores + slack >= self.floor)
        if not len(places):
            return
        middle, wide = scores[places].astype(np.float64), slack[places].astype(np.float64)
        with self._lock:
            self._new.append((places.astype(np.int64) + offset, middle - wide, middle + wide))
            self._n_new += len(places)
            if self._n_new >= FEW_NEW or not np.isfinite(self.floor):
                self._tighten()

    def found(self) -> tuple[IntArray, DoubleArray]:
        """Return the best rows and their exact scores, best first; among equals the lower row number comes first."""
        with self._lock:
            self._tighten()
            self._settle()
            return self._rows.copy(), self._low.copy()

    def _tighten(self) -> None:
        self._rows = np.concatenate([self._rows, *(rows for rows, _, _ in self._new)])
        self._low = np.concatenate([self._low, *(low for _, low, _ in self._new)])
        self._high = np.concatenate([self._high, *(high for _, _, high in self._new)])
        self._new, self._n_new = [], 0
        if len(self._rows) > self._n_wanted:
            self.floor = float(np.partition(self._low, -self._n_wanted)[-self._n_wanted])
            self._keep(self._high >= self.floor)
        if len(self._rows) > self._most:
            self._settle()

    def _settle(self) -> None:
        """Replace bounds by exact scores and keep only the best; a score that was settled before is what it was."""
        open_ones = np.flatnonzero(self._low != self._high)
        self._low[open_ones] = self._high[open_ones] = self._exact(self._rows[open_ones])
        self._keep(~np.isnan(self._low))
        self._keep(np.lexsort((self._rows, -self._low))[: self._n_wanted])
        if len(self._rows) == self._n_wanted:
            self.floor = max(self.floor, float(self._low[-1]))

    def _keep(self, which: AnyArray) -> None:
        self._rows, self._low, self._high = self._rows[which], self._low[which], self._high[which]
