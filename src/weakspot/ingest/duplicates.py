"""Samples with the same content: their ids, and a table of them."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.arrays import AnyArray, BoolArray, IntArray
from weakspot.core.dataset import SPLIT_ORDER

_BLOCK_ROWS = 1 << 20

DUPLICATES_SCHEMA = pa.schema(
    [
        ("content_hash", pa.string()),
        ("n_samples", pa.int64()),
        ("keys", pa.list_(pa.string())),
        ("splits", pa.list_(pa.string())),
        ("labels", pa.list_(pa.string())),
        ("crosses_splits", pa.bool_()),
        ("has_conflicting_labels", pa.bool_()),
    ]
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Copies:
    """Which samples have the same content; nine bytes a sample.

    Args:
        first_rows: the first row with the same content, itself if it is the first [n].
        ranks: 1 for the first row with a content, 2 for the second, and so on [n].
        is_repeated: whether the content occurs more than once [n].
    """

    first_rows: AnyArray
    ranks: AnyArray
    is_repeated: BoolArray

    def sample_ids(self, hashes: pa.Array, rows: IntArray) -> pa.Array:
        """Return a unique id for each of the rows: the content hash, and `-2`, `-3` for its repetitions."""
        ranks = self.ranks[rows]
        if bool((ranks == 1).all()):
            return hashes
        suffixes = pa.array(
            [f"-{rank}" if rank > 1 else "" for rank in ranks.tolist()], pa.string()
        )
        return pc.binary_join_element_wise(hashes, suffixes, "")


def packed_hashes(hashes: pa.Array) -> AnyArray:
    """Return content hashes, given in hexadecimal digits, as pairs of numbers [n, 2]: half of the bytes."""
    digits = "".join(hashes.to_pylist())
    return np.frombuffer(bytes.fromhex(digits), dtype=">u8").reshape(len(hashes), 2)


def find_copies(hashes: list[AnyArray]) -> Copies:
    """Find the samples with the same content hash, given part by part; the list is emptied, because memory counts here."""
    n_rows = sum(len(part) for part in hashes)
    halves = np.empty((2, n_rows), dtype=np.uint64)
    stop = n_rows
    while hashes:
        part = hashes.pop()
        halves[:, stop - len(part) : stop] = part.T
        stop -= len(part)
    order = _sorted_rows(halves)
    small = np.int32 if n_rows <= np.iinfo(np.int32).max else np.int64
    is_first = _begins(halves[0], order) | _begins(halves[1], order)
    del halves
    starts = np.flatnonzero(is_first).astype(small)
    groups = np.cumsum(is_first, dtype=small) - 1
    is_repeated = np.empty(n_rows, dtype=np.bool_)
    is_repeated[order] = (np.diff(starts, append=small(n_rows)) > 1)[groups]
    starts = starts[groups]
    del groups, is_first
    ranks = np.empty(n_rows, dtype=small)
    ranks[order] = np.arange(1, n_rows + 1, dtype=small) - starts
    first_rows = np.empty(n_rows, dtype=small)
    first_rows[order] = order[starts]
    return Copies(first_rows=first_rows, ranks=ranks, is_repeated=is_repeated)


def _sorted_rows(halves: AnyArray) -> IntArray:
    """Return rows in the order of their hashes, earlier rows first among equal ones."""
    order = np.argsort(halves[0], kind="stable")
    if bool((_begins(halves[1], order) & ~_begins(halves[0], order)).any()):
        # Two hashes that share their first half: the first sort need not have put equal ones together.
        return np.lexsort((halves[1], halves[0]))
    return order


def _begins(values: AnyArray, order: IntArray) -> BoolArray:
    """Return where, in this order, a value differs from the one before."""
    found = np.ones(len(values), dtype=np.bool_)
    for start in range(1, len(values), _BLOCK_ROWS):
        block = values[order[start - 1 : start + _BLOCK_ROWS]]
        found[start : start + _BLOCK_ROWS] = block[1:] != block[:-1]
    return found


def duplicates_table(parts: Iterable[pa.Table], copies: Copies, splits: AnyArray) -> pa.Table:
    """Return one row for every content that occurs more than once.

    Columns: content hash, number of samples, their keys, splits and labels (several labels joined by `, `), whether the samples are
    in different splits, and whether their labels differ.
    """
    found = [
        _repeated_rows(part, rows, copies, splits) for part, rows in _number(parts) if len(rows)
    ]
    repeated = [table for table in found if table.num_rows]
    if not repeated:
        return DUPLICATES_SCHEMA.empty_table()
    everything = pa.concat_tables(repeated)
    grouped = everything.group_by("content_hash", use_threads=False).aggregate(
        [(name, "list") for name in ("key", "split", "labels")]
    )
    columns = {
        "content_hash": grouped.column("content_hash"),
        "n_samples": pc.cast(pc.list_value_length(grouped.column("key_list")), pa.int64()),
        "keys": grouped.column("key_list"),
        "splits": grouped.column("split_list"),
        "labels": grouped.column("labels_list"),
        "crosses_splits": _differs(grouped.column("split_list")),
        "has_conflicting_labels": _differs(grouped.column("labels_list")),
    }
    return pa.table(columns, schema=DUPLICATES_SCHEMA).sort_by("content_hash")


def _number(parts: Iterable[pa.Table]) -> Iterable[tuple[pa.Table, IntArray]]:
    start = 0
    for part in parts:
        yield part, np.arange(start, start + part.num_rows)
        start += part.num_rows


def _repeated_rows(part: pa.Table, rows: IntArray, copies: Copies, splits: AnyArray) -> pa.Table:
    names = pa.array([split.value for split in SPLIT_ORDER])
    whole = pa.table(
        {
            "content_hash": part.column("content_hash"),
            "key": part.column("key"),
            "split": names.take(pa.array(splits[rows])),
            "labels": pc.binary_join(part.column("labels"), ", "),
        }
    )
    return whole.filter(pa.array(copies.is_repeated[rows]))


def _differs(lists: pa.ChunkedArray) -> pa.Array:
    return pa.array([len(set(values)) > 1 for values in lists.to_pylist()], pa.bool_())
