"""How the cells of attribute tuples are laid out and counted.

The samples are not read once for every pair and triple of attributes. A few larger blocks of attributes are chosen so that every
triple lies inside one; each block is counted in one pass over the samples, and what is asked for follows by summing its table.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from weakspot.core.arrays import AnyArray, IntArray
from weakspot.core.errors import InputError

MAX_ORDER = 3
MOST_CELLS = 8_000_000
MOST_TUPLE_CELLS = 32_000_000
LARGEST_BLOCK = 8
LARGEST_TABLE = 16_384
LEAST_WORK_PER_THREAD = 1_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Cover:
    """Blocks of attributes inside which all tuples lie.

    Args:
        blocks: [b, l] attributes, -1 at the end.
        grouped: [t] tuples, those of the first block first.
        starts: [b + 1] where the tuples of every block begin.
    """

    blocks: IntArray
    grouped: IntArray
    starts: IntArray


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
        from weakspot.core.combinations.kernels import cover_tuples

        block_of = np.full(len(self.tuples), -1, dtype=np.int64)
        blocks = np.empty((len(self.tuples), LARGEST_BLOCK), dtype=np.int64)
        n_blocks = cover_tuples(
            self.tuples, self.sizes, (LARGEST_TABLE, n_samples), blocks, block_of
        )
        grouped = np.argsort(block_of, kind="stable")
        starts = np.searchsorted(block_of[grouped], np.arange(n_blocks + 1))
        return Cover(blocks=blocks[:n_blocks].copy(), grouped=grouped, starts=starts)

    def counted(self, columns: AnyArray, cover: Cover, *, n_threads: int = 1) -> AnyArray:
        """Return the number of samples in every cell, given codes by column [a, n]."""
        from weakspot.core.combinations.kernels import count_blocks

        cells = np.zeros(self.n_cells, dtype=np.uint32)
        n_blocks = len(cover.blocks)
        work = columns.shape[1] * n_blocks
        n_parts = min(n_threads, n_blocks, 1 + work // LEAST_WORK_PER_THREAD)
        ends = np.linspace(0, n_blocks, n_parts + 1).astype(np.int64).tolist()

        # A tuple belongs to one block, so no two threads write to the same cell.
        def count(part: int) -> None:
            first, last = ends[part], ends[part + 1]
            plan = (self.tuples, self.offsets, cover.grouped, cover.starts[first : last + 1])
            count_blocks(columns, self.sizes, cover.blocks[first:last], plan, cells)

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
        from weakspot.core.combinations.kernels import recode, value_counts

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

    def of_samples(self, rows: IntArray) -> AnyArray:
        """Return the codes of some samples by column [a, len(rows)]."""
        return np.take(self.columns, rows, axis=1)

    def plans(self, max_order: int) -> Iterator[CellPlan]:
        """Yield all tuples of attributes with values, shorter ones first, in pieces whose cells fit in memory."""
        used = np.flatnonzero(self.sizes > self.first_codes).tolist()
        tuples = np.concatenate([_tuples(used, order) for order in range(1, max_order + 1)])
        cells = (
            np.where(tuples >= 0, self.sizes[tuples], 1).prod(axis=1)
            if len(used)
            else np.zeros(0, dtype=np.int64)
        )
        if cells.max(initial=0) > MOST_TUPLE_CELLS:
            raise InputError(
                "The attributes have too many values to be combined.",
                given=np.sort(self.sizes)[::-1][:max_order].tolist(),
                fix="Give attributes with fewer values, a lower order or a larger support floor.",
            )
        ends = np.cumsum(cells)
        start = 0
        while start < len(tuples):
            begun = int(ends[start] - cells[start])
            stop = max(start + 1, int(np.searchsorted(ends, begun + MOST_CELLS, side="right")))
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
