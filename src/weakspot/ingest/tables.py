"""What a table file of any format gives: its columns, and its rows in batches."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

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
