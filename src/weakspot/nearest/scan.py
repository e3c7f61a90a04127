"""The rows nearest to an embedding, and all rows near enough: exactly, by one reading of all rows, in threads.

Every row first gets a rough score with a bound on its error; rows that the bound leaves open get an exact one. So the answer
depends on neither the number of threads, nor the processor, nor on where the rough scores came from: embeddings or a smaller copy.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, FloatArray, IntArray
from weakspot.core.errors import ConfigError, DataError
from weakspot.nearest.shards import EmbeddingShards, Piece, Queries

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


Given = TypeVar("Given")
Made = TypeVar("Made")


class RoughScores(Protocol):
    """Gives scores of pieces of rows that are off by at most a known number."""

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Return all rows, in order."""

    def rough(
        self, piece: Piece, queries: Queries, allowed: BoolArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return scores [m, n], NaN for rows that are not meant, and by how much they can be off [n]."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Nearest:
    """The rows nearest to one query.

    Args:
        rows: row numbers, nearest first; among equals the lower number first.
        scores: cosine of the angle to the query.
    """

    rows: IntArray
    scores: DoubleArray


def nearest_rows(
    shards: EmbeddingShards,
    queries: AnyArray,
    n_wanted: int,
    *,
    within: BoolArray | None = None,
    rough: RoughScores | None = None,
    threads: int | None = None,
) -> list[Nearest]:
    """Return for every query the rows with the largest cosine, fewer if there are no more; all queries in one reading.

    Args:
        shards: the rows; those with a number that is not finite are never found.
        queries: one embedding [d] or several [m, d].
        n_wanted: how many rows a query.
        within: which rows are meant [n]; all by default.
        rough: a smaller copy of the same rows to read first; the answer is the same.
        threads: how many; all cores by default.

    Raises:
        DataError: if a query does not fit or has no direction.
    """
    if n_wanted < 1:
        raise ConfigError("At least one row must be asked for.", given=n_wanted)
    allowed, asked, source = (
        _checked_mask(shards, within),
        Queries.of(queries, dimension=shards.dimension),
        rough or shards,
    )
    best = [BestRows(n_wanted, _exact(shards, asked, number)) for number in range(len(asked))]

    def look(piece: Piece) -> None:
        part = allowed[piece.offset : piece.offset + len(piece)]
        if part.any():
            scores, slack = source.rough(piece, asked, part)
            for number, one in enumerate(best):
                one.offer(scores[number], slack, piece.offset)

    for _ in in_order(look, source.pieces, threads):
        pass
    return [Nearest(rows=rows, scores=scores) for rows, scores in (one.found() for one in best)]


def rows_above(
    shards: EmbeddingShards,
    query: AnyArray,
    threshold: float,
    *,
    within: BoolArray | None = None,
    rough: RoughScores | None = None,
    threads: int | None = None,
) -> Iterator[IntArray]:
    """Yield the rows whose cosine with a query [d] is at least a threshold, ascending, piece by piece.

    Args:
        shards: the rows; those with a number that is not finite are never found.
        query: one embedding [d].
        threshold: the least cosine.
        within: which rows are meant [n]; all by default.
        rough: a smaller copy of the same rows to read first; the answer is the same.
        threads: how many; all cores by default.

    Raises:
        DataError: if the query does not fit or has no direction.
    """
    if np.isnan(threshold):
        raise ConfigError("The threshold is not a number.", given=threshold)
    allowed, asked, source = (
        _checked_mask(shards, within),
        Queries.of(query, dimension=shards.dimension),
        rough or shards,
    )

    def look(piece: Piece) -> IntArray:
        part = allowed[piece.offset : piece.offset + len(piece)]
        if not part.any():
            return np.empty(0, dtype=np.int64)
        scores, slack = source.rough(piece, asked, part)
        places = np.flatnonzero(scores[0] + slack >= threshold)
        is_sure = scores[0][places] - slack[places] >= threshold
        rows: IntArray = places.astype(np.int64) + piece.offset
        is_sure[~is_sure] = shards.exact_scores(rows[~is_sure], asked) >= threshold
        found: IntArray = rows[is_sure]
        return found

    return in_order(look, source.pieces, threads)


def in_order(
    function: Callable[[Given], Made], items: tuple[Given, ...], threads: int | None
) -> Iterator[Made]:
    """Yield what a function makes of items, in their order, a few at a time in threads."""
    n_threads = min(threads or os.cpu_count() or 1, max(len(items), 1))
    if n_threads == 1:
        yield from map(function, items)
        return
    waiting: deque[Future[Made]] = deque()
    with ThreadPoolExecutor(n_threads, thread_name_prefix="nearest") as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > 4 * n_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _exact(
    shards: EmbeddingShards, queries: Queries, number: int
) -> Callable[[IntArray], DoubleArray]:
    return lambda rows: shards.exact_scores(rows, queries, number)


def _checked_mask(shards: EmbeddingShards, within: BoolArray | None) -> BoolArray:
    if within is None:
        return np.ones(len(shards), dtype=np.bool_)
    if within.shape != (len(shards),) or within.dtype != np.bool_:
        raise DataError(
            "Rows to look within must be one truth value a row.",
            given=(within.shape, str(within.dtype)),
        )
    return within
