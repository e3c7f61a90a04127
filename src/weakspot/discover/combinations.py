"""Counts of samples and failures for all combinations of attribute values, and how strongly failures gather in them by chance."""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, IntArray
from weakspot.core.errors import InputError
from weakspot.core.group_tests import deal_anew

MAX_ORDER = 3
MAX_CELLS = 8_000_000
MAX_TUPLE_CELLS = 32_000_000
MAX_BLOCK = 8
MAX_TABLE = 16_384
MIN_WORK_PER_THREAD = 1_000_000


Cover = tuple[IntArray, IntArray, IntArray]
"""Blocks of attributes [b, l] inside which all tuples lie, -1 at the end; tuples [t], those of the first block first; and where the
tuples of every block begin [b + 1]."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CellPlan:
    """Tuples of attributes that are counted together, and where their cells are.

    Args:
        sizes: [a] codes of every attribute.
        tuples: [t, 3] attributes, -1 where a tuple has fewer.
        offsets: [t] first cell of every tuple.
        n_cells: cells in all.
    """

    sizes: IntArray
    tuples: IntArray
    offsets: IntArray
    n_cells: int

    def cover(self, n_samples: int) -> Cover:
        """Choose blocks whose tables cost no more than a pass over so many samples."""
        from weakspot.discover.combination_kernels import cover_tuples

        block_of = np.full(len(self.tuples), -1, dtype=np.int64)
        blocks = np.empty((len(self.tuples), MAX_BLOCK), dtype=np.int64)
        n_blocks = cover_tuples(self.tuples, self.sizes, (MAX_TABLE, n_samples), blocks, block_of)
        grouped = np.argsort(block_of, kind="stable")
        starts = np.searchsorted(block_of[grouped], np.arange(n_blocks + 1))
        return blocks[:n_blocks].copy(), grouped, starts

    def counted(self, columns: AnyArray, cover: Cover, *, n_threads: int = 1) -> AnyArray:
        """Return the number of samples in every cell, given codes by column [a, n]."""
        from weakspot.discover.combination_kernels import count_blocks

        cells = np.zeros(self.n_cells, dtype=np.uint32)
        blocks, grouped, starts = cover
        n_blocks = len(blocks)
        work = columns.shape[1] * n_blocks
        n_parts = min(n_threads, n_blocks, 1 + work // MIN_WORK_PER_THREAD)
        ends = np.linspace(0, n_blocks, n_parts + 1).astype(np.int64).tolist()

        # A tuple belongs to one block, so no two threads write to the same cell.
        def count(part: int) -> None:
            first, last = ends[part], ends[part + 1]
            plan = (self.tuples, self.offsets, grouped, starts[first : last + 1])
            count_blocks(columns, self.sizes, blocks[first:last], plan, cells)

        if n_parts == 1:
            count(0)
        else:
            with ThreadPoolExecutor(n_parts) as pool:
                list(pool.map(count, range(n_parts)))
        return cells


@dataclass(frozen=True, kw_only=True, eq=False)
class CodeColumns:
    """Codes by column, without values that are too rare to be in any combination.

    Args:
        columns: [a, n] new codes.
        sizes: [a] number of new codes.
        first_codes: [a] 1 if the new code 0 stands for unknown and rare values; 0 if there are none and it is a value too.
        old_codes: [a, k] the code that a new code stands for.
    """

    columns: AnyArray
    sizes: IntArray
    first_codes: IntArray
    old_codes: AnyArray

    @classmethod
    def of(cls, codes: AnyArray, *, min_support: int) -> "CodeColumns":
        """Recode [n, a]; a combination has no more samples than its rarest value, so nothing is lost."""
        from weakspot.discover.combination_kernels import recode, value_counts

        given = codes if codes.dtype in (np.uint8, np.uint16) else codes.astype(np.uint16)
        n_codes = int(given.max()) + 1 if given.size else 1
        counts = value_counts(given, n_codes)
        is_kept = counts >= min_support
        is_kept[:, 0] = False
        has_others = ((counts > 0) & ~is_kept).any(axis=1)
        first_codes: IntArray = np.asarray(has_others, dtype=np.int64)
        sizes = first_codes + is_kept.sum(axis=1)
        dtype = np.uint8 if sizes.max(initial=1) <= 1 + np.iinfo(np.uint8).max else np.uint16
        numbers = np.cumsum(is_kept, axis=1) - 1 + first_codes[:, None]
        new_codes = np.where(is_kept, numbers, 0).astype(dtype)
        old_codes = np.zeros((len(sizes), int(sizes.max(initial=1))), dtype=np.uint16)
        attribute, value = np.nonzero(is_kept)
        old_codes[attribute, new_codes[attribute, value]] = value
        columns = np.empty(codes.shape[::-1], dtype=dtype)
        recode(given, new_codes, columns)
        return cls(columns=columns, sizes=sizes, first_codes=first_codes, old_codes=old_codes)

    def plans(self, max_order: int) -> Iterator[CellPlan]:
        """Yield all tuples of attributes with values, shorter ones first, in pieces whose cells fit in memory."""
        used = np.flatnonzero(self.sizes > self.first_codes).tolist()
        tuples = np.concatenate([_tuples(used, order) for order in range(1, max_order + 1)])
        cells = (
            np.where(tuples >= 0, self.sizes[tuples], 1).prod(axis=1)
            if len(used)
            else np.zeros(0, dtype=np.int64)
        )
        if cells.max(initial=0) > MAX_TUPLE_CELLS:
            raise InputError(
                "The attributes have too many values to be combined.",
                given=np.sort(self.sizes)[::-1][:max_order].tolist(),
                fix="Give attributes with fewer values, a lower order or a larger support floor.",
            )
        ends = np.cumsum(cells)
        start = 0
        while start < len(tuples):
            begun = int(ends[start] - cells[start])
            stop = max(start + 1, int(np.searchsorted(ends, begun + MAX_CELLS, side="right")))
            offsets = ends[start:stop] - cells[start:stop] - begun
            yield CellPlan(
                sizes=self.sizes,
                tuples=tuples[start:stop],
                offsets=offsets,
                n_cells=int(ends[stop - 1]) - begun,
            )
            start = stop


def _tuples(attributes: list[int], order: int) -> IntArray:
    chosen = list(combinations(attributes, order))
    padded = np.full((len(chosen), MAX_ORDER), -1, dtype=np.int64)
    if chosen:
        padded[:, :order] = chosen
    return padded


MAX_CODES = 65_536
MAX_COMBINATIONS = 20_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Combinations:
    """Combinations of values with enough samples; shorter ones first, then in the order of attributes and codes.

    Args:
        attributes: [m, 3] columns of the codes, -1 where a combination has fewer.
        codes: [m, 3] value in each of them, 0 where a combination has fewer.
        n_inside: [m] samples that have all the values.
        failed_inside: [m] failures among them.
        n_samples: samples in all.
        n_failed: failures in all.
    """

    attributes: AnyArray
    codes: AnyArray
    n_inside: IntArray
    failed_inside: IntArray
    n_samples: int
    n_failed: int

    def __len__(self) -> int:
        return len(self.n_inside)

    @cached_property
    def orders(self) -> IntArray:
        """Return how many values every combination has [m]."""
        return np.asarray((self.attributes >= 0).sum(axis=1), dtype=np.int64)

    def keys(self, places: IntArray, *, dropped: int | None = None) -> IntArray:
        """Return a number for each of some combinations [k], as it is or without one of its values."""
        attributes, codes = self.attributes[places], self.codes[places]
        width = int(self.codes.max(initial=0)) + 1
        values = np.where(attributes >= 0, attributes.astype(np.int64) * width + codes + 1, 0)
        if dropped is not None:
            values = np.insert(np.delete(values, dropped, axis=1), MAX_ORDER - 1, 0, axis=1)
        base = (int(self.attributes.max(initial=0)) + 1) * width + 1
        return np.asarray((values[:, 0] * base + values[:, 1]) * base + values[:, 2])

    @cached_property
    def _by_key(self) -> tuple[IntArray, IntArray]:
        keys = self.keys(np.arange(len(self)))
        order = np.argsort(keys, kind="stable")
        return order, keys[order]

    def without(self, places: IntArray, dropped: int) -> IntArray:
        """Return where some combinations are among all when one of their values is left out [k]."""
        order, ordered = self._by_key
        return order[np.searchsorted(ordered, self.keys(places, dropped=dropped))]

    def inside(self, codes: AnyArray, place: int) -> BoolArray:
        """Return which rows of codes [n, a] have all the values of one combination."""
        used = self.attributes[place] >= 0
        return np.asarray(
            (codes[:, self.attributes[place][used]] == self.codes[place][used]).all(axis=1)
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class CountedPiece:
    """The combinations of some tuples of attributes, and where their counts are among the cells.

    Args:
        plan: the tuples.
        attributes: [m, 3] as in `Combinations`.
        codes: [m, 3] as in `Combinations`.
        n_inside: [m].
        places: [m] cells.
    """

    plan: CellPlan
    attributes: AnyArray
    codes: AnyArray
    n_inside: IntArray
    places: IntArray

    @classmethod
    def of(
        cls, plan: CellPlan, columns: CodeColumns, *, min_support: int, n_threads: int
    ) -> "CountedPiece":
        from weakspot.discover.combination_kernels import (
            count_supported,
            find_supported,
            restore_codes,
        )

        cells = plan.counted(
            columns.columns, plan.cover(columns.columns.shape[1]), n_threads=n_threads
        )
        given = (cells, (plan.sizes, columns.first_codes), plan.tuples, plan.offsets, min_support)
        n_found = count_supported(*given)
        attributes = np.empty((n_found, MAX_ORDER), dtype=np.int32)
        codes = np.empty((n_found, MAX_ORDER), dtype=np.uint16)
        n_inside, places = np.empty((2, n_found), dtype=np.int64)
        find_supported(*given, (attributes, codes, n_inside, places))
        restore_codes(attributes, codes, columns.old_codes)
        return cls(plan=plan, attributes=attributes, codes=codes, n_inside=n_inside, places=places)

    def counts(self, columns: AnyArray, *, n_threads: int) -> IntArray:
        """Return how many of the given samples [a, n] have each combination [m]."""
        cells = self.plan.counted(columns, self.plan.cover(columns.shape[1]), n_threads=n_threads)
        return cells[self.places].astype(np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class CombinationCounter:
    """All combinations with enough samples, ready to be counted for one set of failures after another."""

    columns: CodeColumns
    pieces: tuple[CountedPiece, ...]
    n_threads: int

    @classmethod
    def of(
        cls,
        codes: AnyArray,
        *,
        max_order: int = MAX_ORDER,
        min_support: int = 1,
        n_threads: int = 0,
    ) -> "CombinationCounter":
        """Find the combinations.

        Args:
            codes: [n, a] value of every attribute, 0 where it is not known; unknown values are in no combination.
            max_order: values in a combination, at most 3.
            min_support: combinations of fewer samples are left out.
            n_threads: 0 for one a processor; the result is the same for any number.
        """
        _refuse(codes, max_order, min_support)
        threads = n_threads or len(os.sched_getaffinity(0))
        columns = CodeColumns.of(codes, min_support=min_support)
        pieces: list[CountedPiece] = []
        n_found = 0
        for plan in columns.plans(max_order):
            pieces.append(
                CountedPiece.of(plan, columns, min_support=min_support, n_threads=threads)
            )
            n_found += len(pieces[-1].places)
            if n_found > MAX_COMBINATIONS:
                raise InputError(
                    f"There are more than {MAX_COMBINATIONS} combinations of attribute values.",
                    fix="Give fewer attributes, a lower order or a larger support floor.",
                )
        return cls(columns=columns, pieces=tuple(pieces), n_threads=threads)

    def count(self, failed: BoolArray) -> Combinations:
        if failed.shape != self.columns.columns.shape[1:]:
            raise InputError("There must be one prediction a sample.", given=failed.shape)
        failing = np.take(self.columns.columns, np.flatnonzero(failed), axis=1)
        counts = [piece.counts(failing, n_threads=self.n_threads) for piece in self.pieces]
        return Combinations(
            attributes=_join(
                [piece.attributes for piece in self.pieces], np.zeros((0, MAX_ORDER), np.int32)
            ),
            codes=_join(
                [piece.codes for piece in self.pieces], np.zeros((0, MAX_ORDER), np.uint16)
            ),
            n_inside=_join([piece.n_inside for piece in self.pieces], np.zeros(0, np.int64)),
            failed_inside=_join(counts, np.zeros(0, np.int64)),
            n_samples=len(failed),
            n_failed=int(failed.sum()),
        )


def count_combinations(
    codes: AnyArray,
    failed: BoolArray,
    *,
    max_order: int = MAX_ORDER,
    min_support: int = 1,
    n_threads: int = 0,
) -> Combinations:
    """Count samples and failures of every combination of values that enough samples have; see `CombinationCounter.of`.

    >>> found = count_combinations(np.array([[1, 1], [1, 2], [1, 1]], np.uint8), np.array([True, False, False]), max_order=2)
    >>> found.codes[:, :2].tolist(), found.n_inside.tolist(), found.failed_inside.tolist()
    ([[1, 0], [1, 0], [2, 0], [1, 1], [1, 2]], [3, 2, 1, 2, 1], [1, 1, 0, 1, 0])
    """
    return CombinationCounter.of(
        codes, max_order=max_order, min_support=min_support, n_threads=n_threads
    ).count(failed)


def affordable_order(codes: AnyArray, *, max_order: int, min_support: int, most: int) -> int:
    """Return the largest order, at least 1, at which codes [n, a] can be counted and there are at most so many combinations."""
    n_values = np.array(
        [(np.bincount(column)[1:] >= min_support).sum() for column in codes.T], dtype=np.int64
    )
    for order in range(max_order, 1, -1):
        largest = np.prod(np.sort(n_values)[::-1][:order].astype(np.float64) + 1)
        bound = bound_on_combinations(n_values, len(codes), order=order, min_support=min_support)
        if bound <= most and largest <= MAX_TUPLE_CELLS:
            return order
    return 1


def bound_on_combinations(
    n_values: IntArray, n_samples: int, *, order: int, min_support: int
) -> int:
    """Return how many combinations of up to so many values there can be with enough samples, given the values of each attribute.

    >>> bound_on_combinations(np.array([2, 3]), 100, order=2, min_support=1)
    11
    """
    products = np.zeros(order + 1)
    products[0] = 1.0
    for count in n_values:
        products[1:] += products[:-1] * float(count)
    most_each = n_samples // max(min_support, 1)
    return sum(
        int(min(products[length], comb(len(n_values), length) * most_each))
        for length in range(1, order + 1)
    )


def _join(parts: list[AnyArray], nothing: AnyArray) -> AnyArray:
    return parts[0] if len(parts) == 1 else np.concatenate([nothing, *parts])


def _refuse(codes: AnyArray, max_order: int, min_support: int) -> None:
    if codes.ndim != 2 or not np.issubdtype(codes.dtype, np.integer):  # noqa: PLR2004 - samples and attributes
        raise InputError(
            "Codes must be whole numbers [n, a].", given=(codes.dtype.name, codes.shape)
        )
    if not 1 <= max_order <= MAX_ORDER or min_support < 1:
        raise InputError(
            "The order must be 1 to 3 and the support floor at least 1.",
            given=(max_order, min_support),
        )
    if (
        codes.dtype not in (np.uint8, np.uint16)
        and codes.size
        and (codes.min() < 0 or codes.max() >= MAX_CODES)
    ):
        raise InputError(
            f"Codes must lie between 0 and {MAX_CODES - 1}.",
            given=(int(codes.min()), int(codes.max())),
        )


MAX_DEALT = 4_000_000


def evidence_of(found: Combinations) -> DoubleArray:
    """Return for every combination [m] how much likelier the counts are with a failure rate of its own, as a logarithm.

    It is half the likelihood-ratio statistic, about as large as minus the logarithm of a p-value; minus infinity where failures are
    no more frequent than elsewhere.
    """
    return _evidence(found, np.zeros(len(found)))


def scores_of(found: Combinations) -> DoubleArray:
    """Return evidence minus penalty [m], so that combinations of all orders can be compared.

    There are many more triples than single values, so that the best of them has more evidence by chance alone. With the penalty
    every order has the same share in what chance brings forward.
    """
    return _evidence(found, penalties_of(found))


def penalties_of(found: Combinations) -> DoubleArray:
    """Return for every combination [m] the logarithm of the number of combinations of the same order."""
    counts = np.bincount(found.orders, minlength=1)
    return np.log(np.maximum(counts, 1))[found.orders]


class ShuffledFailures:
    """The same number of failures dealt out anew, again and again: what the best of all combinations reaches by chance.

    Args:
        counter: the combinations.
        failed: [n] which samples really failed.
        groups: [n] number of the group of every sample, failures of which are dealt out together; None: each is its own.
    """

    def __init__(
        self, counter: CombinationCounter, failed: BoolArray, groups: IntArray | None = None
    ) -> None:
        self._failed, self._groups = failed, groups
        found = counter.count(failed)
        self._columns, self._n_threads = counter.columns, counter.n_threads
        self._n_samples, self._n_failed = found.n_samples, found.n_failed
        self._powers = _powers(found.n_samples)
        # The smaller side is counted, whichever that is.
        self._holds_right = 2 * found.n_failed > found.n_samples
        self._n_few = found.n_samples - found.n_failed if self._holds_right else found.n_failed
        fixed = _fixed_parts(found, self._powers, penalties_of(found))
        starts = np.cumsum([0, *(len(piece.places) for piece in counter.pieces)])
        self._pieces: list[tuple[CountedPiece, Cover, DoubleArray]] = [
            (piece, piece.plan.cover(self._n_few), fixed[start : start + len(piece.places)])
            for piece, start in zip(counter.pieces, starts, strict=False)
        ]

    def maxima(self, n_shuffles: int, draws: np.random.Generator) -> DoubleArray:
        """Return the largest score of any combination after every shuffle [n_shuffles]."""
        maxima = np.full(n_shuffles, -np.inf)
        at_a_time = max(1, MAX_DEALT // max(self._n_samples, 1))
        for start in range(0, n_shuffles, at_a_time):
            part = maxima[start : start + at_a_time]
            self._raise(self._dealt(len(part), draws), part)
        return maxima

    def _dealt(self, n_shuffles: int, draws: np.random.Generator) -> AnyArray:
        """Return the samples of the smaller side after every shuffle [n_shuffles, k]."""
        if self._groups is not None:
            dealt = deal_anew(self._failed, self._groups, n_shuffles, draws)
            places = np.nonzero(dealt != self._holds_right)[1].astype(np.int32)
            return places.reshape(n_shuffles, self._n_few)
        places = np.broadcast_to(
            np.arange(self._n_samples, dtype=np.int32), (n_shuffles, self._n_samples)
        )
        return np.ascontiguousarray(draws.permuted(places, axis=1)[:, : self._n_few])

    def _raise(self, rows: AnyArray, maxima: DoubleArray) -> None:
        work = rows.size * sum(len(blocks) for _, (blocks, _, _), _ in self._pieces)
        n_parts = max(1, min(self._n_threads, len(rows), work // MIN_WORK_PER_THREAD))
        ends = np.linspace(0, len(rows), n_parts + 1).astype(np.int64)

        def score(part: int) -> None:
            chosen = slice(ends[part], ends[part + 1])
            self._raise_part(rows[chosen], maxima[chosen])

        if n_parts == 1:
            score(0)
            return
        with ThreadPoolExecutor(n_parts) as pool:
            list(pool.map(score, range(n_parts)))

    def _raise_part(self, rows: AnyArray, maxima: DoubleArray) -> None:
        from weakspot.discover.combination_kernels import raise_maxima

        totals = (self._n_samples, self._n_failed, int(self._holds_right))
        for piece, (blocks, grouped, starts), fixed in self._pieces:
            plan = (piece.plan.tuples, piece.plan.offsets, grouped, starts)
            layout = (piece.plan.sizes, blocks, plan, piece.plan.n_cells)
            raise_maxima(
                self._columns.columns,
                rows,
                layout,
                (piece.places, piece.n_inside, fixed, self._powers),
                totals,
                maxima,
            )


def _evidence(found: Combinations, penalties: DoubleArray) -> DoubleArray:
    # Term by term as the compiled loop adds them: equal counts must give equal numbers, because ties decide on chances.
    failed, n_inside = found.failed_inside, found.n_inside
    powers = _powers(found.n_samples)
    right_outside = found.n_samples - n_inside - found.n_failed + failed
    evidence = (
        powers[failed]
        + powers[n_inside - failed]
        + powers[found.n_failed - failed]
        + powers[right_outside]
    )
    is_above = failed * found.n_samples > n_inside * found.n_failed
    return np.where(is_above, evidence + _fixed_parts(found, powers, penalties), -np.inf)


def _fixed_parts(found: Combinations, powers: DoubleArray, penalties: DoubleArray) -> DoubleArray:
    """Return what does not depend on how many failures are inside [m]."""
    n_samples, n_failed = found.n_samples, found.n_failed
    constant = powers[n_samples] - powers[n_failed] - powers[n_samples - n_failed]
    return np.asarray(
        constant - powers[found.n_inside] - powers[n_samples - found.n_inside] - penalties
    )


def _powers(n_samples: int) -> DoubleArray:
    counts = np.arange(n_samples + 1, dtype=np.float64)
    return np.asarray(counts * np.log(np.maximum(counts, 1.0)))
