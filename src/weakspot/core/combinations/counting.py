"""Samples and failures of every combination of attribute values, up to three at a time."""

import os
from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, IntArray
from weakspot.core.combinations.cells import MAX_ORDER, MOST_TUPLE_CELLS, CellPlan, CodeColumns
from weakspot.core.errors import InputError

MOST_CODES = 65_536
MOST_COMBINATIONS = 20_000_000


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
        from weakspot.core.combinations.kernels import (
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
            if n_found > MOST_COMBINATIONS:
                raise InputError(
                    f"There are more than {MOST_COMBINATIONS} combinations of attribute values.",
                    fix="Give fewer attributes, a lower order or a larger support floor.",
                )
        return cls(columns=columns, pieces=tuple(pieces), n_threads=threads)

    def count(self, failed: BoolArray) -> Combinations:
        if failed.shape != self.columns.columns.shape[1:]:
            raise InputError("There must be one prediction a sample.", given=failed.shape)
        failing = self.columns.of_samples(np.flatnonzero(failed))
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
        if bound <= most and largest <= MOST_TUPLE_CELLS:
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
        and (codes.min() < 0 or codes.max() >= MOST_CODES)
    ):
        raise InputError(
            f"Codes must lie between 0 and {MOST_CODES - 1}.",
            given=(int(codes.min()), int(codes.max())),
        )
