"""Samples with the same content: their ids, and a table of them."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.arrays import AnyArray, BoolArray, IntArray
from weakspot.core.dataset import SPLIT_ORDER

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
    """Which samples have the same content.

    Args:
        first_rows: the first row with the same content, itself if it is the first [n].
        ranks: 1 for the first row with a content, 2 for the second, and so on [n].
        is_repeated: whether the content occurs more than once [n].
    """

    first_rows: IntArray
    ranks: IntArray
    is_repeated: BoolArray

    def sample_ids(self, hashes: pa.Array, rows: IntArray) -> pa.Array:
        """Return a unique id for each of the rows: the content hash, and `-2`, `-3` for its repetitions."""
        ranks = self.ranks[rows]
        if bool((ranks == 1).all()):
            return hashes
        suffixes = pa.array([f"-{rank}" if rank > 1 else "" for rank in ranks.tolist()], pa.string())
        return pc.binary_join_element_wise(hashes, suffixes, "")


def find_copies(hashes: list[pa.Array]) -> Copies:
    """Find the samples with the same content hash, given part by part."""
    groups = np.asarray(pa.concat_arrays(hashes).dictionary_encode().indices)
    _, first, sizes = np.unique(groups, return_index=True, return_counts=True)
    order = np.argsort(groups, kind="stable")
    ranks = np.empty(len(groups), dtype=np.int64)
    ranks[order] = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1
    return Copies(first_rows=first[groups].astype(np.int64), ranks=ranks, is_repeated=sizes[groups] > 1)


def duplicates_table(parts: Iterable[pa.Table], copies: Copies, splits: AnyArray) -> pa.Table:
    """Return one row for every content that occurs more than once.

    Columns: content hash, number of samples, their keys, splits and labels (several labels joined by `, `), whether the samples are
    in different splits, and whether their labels differ.
    """
    found = [_repeated_rows(part, rows, copies, splits) for part, rows in _numbered(parts) if len(rows)]
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


def _numbered(parts: Iterable[pa.Table]) -> Iterable[tuple[pa.Table, IntArray]]:
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
