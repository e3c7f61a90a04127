"""What a table file of any format gives: its columns, and its rows in batches."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import AnyArray
from weakspot.ingest.problems import Problems

TABLE_EXTENSIONS: dict[str, str] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
}


@dataclass(frozen=True, kw_only=True)
class TableHeader:
    """The columns of a table.

    Args:
        names: column names in order.
        class_names: names behind the codes of a column, where the file itself tells them.
        binary: columns of bytes.
        images: columns that hold images as a pair of bytes and path.
        is_text: whether every value is text, so that numbers and yes/no must be guessed.
    """

    names: tuple[str, ...]
    class_names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    binary: frozenset[str] = frozenset()
    images: frozenset[str] = frozenset()
    is_text: bool = False


class ArrowColumns(Mapping[str, list[object]]):
    """Columns that Arrow holds; each becomes a list of Python values when it is asked for.

    Args:
        table: the columns.
    """

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self._lists: dict[str, list[object]] = {}

    def __getitem__(self, name: str) -> list[object]:
        if name not in self._lists:
            self._lists[name] = self.table.column(name).to_pylist()
        return self._lists[name]

    def __contains__(self, name: object) -> bool:
        return name in self.table.column_names

    def __iter__(self) -> Iterator[str]:
        return iter(self.table.column_names)

    def __len__(self) -> int:
        return int(self.table.num_columns)


class DistinctCells(NamedTuple):
    """The different cells of a column, so that each is parsed once.

    Args:
        values: in the order in which they first appear; a column of lists or the like may repeat them.
        codes: place among them of every row [n].
    """

    values: list[object]
    codes: AnyArray


@dataclass(frozen=True, kw_only=True)
class TableBatch:
    """Consecutive rows as columns.

    Args:
        first_row: position of the first row in its file.
        n_rows: how many rows.
        columns: values by column name.
    """

    first_row: int
    n_rows: int
    columns: Mapping[str, list[object]]

    def arrow(self, name: str) -> pa.ChunkedArray | None:
        """Return a column as Arrow holds it; None if it does not."""
        if not isinstance(self.columns, ArrowColumns) or name not in self.columns:
            return None
        return self.columns.table.column(name)

    def distinct(self, name: str | None) -> DistinctCells:
        """Return the cells of a column; where there is no such column, all are empty."""
        if name is None or name not in self.columns:
            return DistinctCells([None], np.zeros(self.n_rows, dtype=np.int64))
        held = self.arrow(name)
        if held is None or not _can_be_encoded(held.type):
            return DistinctCells(self.columns[name], np.arange(self.n_rows))
        encoded = held.combine_chunks().dictionary_encode(null_encoding="encode")
        return DistinctCells(encoded.dictionary.to_pylist(), np.asarray(encoded.indices))


def _can_be_encoded(kind: pa.DataType) -> bool:
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return bool(is_text or pa.types.is_boolean(kind) or pa.types.is_integer(kind))


class TableFile(Protocol):
    """A table file that can be read again and again."""

    @property
    def location(self) -> str:
        """Where the file is."""

    def header(self, problems: Problems) -> TableHeader:
        """Return the columns; what is wrong with them goes to `problems`."""

    def batches(
        self, problems: Problems, *, start: int = 0, without: frozenset[str] = frozenset()
    ) -> Iterator[TableBatch]:
        """Yield rows from `start` on, leaving out some columns; rows that cannot be read go to `problems`."""


def note_repeated(names: list[str], problems: Problems) -> None:
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            problems.add(f"The column {name!r} is there {names.count(name)} times.")


def rows_at_once(tables: Iterator[pa.Table], start: int, n_rows: int) -> Iterator[pa.Table]:
    """Yield the rows of tables from `start` on, so many at a time."""
    held: list[pa.Table] = []
    n_held = 0
    for table in tables:
        left = table.slice(start)
        start = max(0, start - table.num_rows)
        held.append(left)
        n_held += left.num_rows
        if n_held >= n_rows:
            whole = pa.concat_tables(held).combine_chunks()
            stop = n_held - n_held % n_rows
            yield from (whole.slice(begin, n_rows) for begin in range(0, stop, n_rows))
            held, n_held = [whole.slice(stop)], n_held - stop
    if n_held:
        yield pa.concat_tables(held).combine_chunks()
