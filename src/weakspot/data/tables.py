"""Table files of any format (CSV, TSV, JSON lines, Parquet, Arrow): their columns, and their rows in batches."""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, BinaryIO, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import AnyArray
from weakspot.core.errors import DataError
from weakspot.data.locations import is_local, local_path, open_location, shown_location
from weakspot.data.source import Problems

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


class DistinctCells(NamedTuple):
    """The different cells of a column, so that each is parsed once.

    Args:
        values: in the order in which they first appear; a column of lists or the like may repeat them.
        codes: place among them of every row [n].
    """

    values: list[Any]
    codes: AnyArray


@dataclass(frozen=True, kw_only=True, eq=False)
class TableBatch:
    """Consecutive rows as columns, as Arrow holds them or as lists.

    Args:
        first_row: position of the first row in its file.
        columns: values by column name.
    """

    first_row: int
    n_rows: int
    columns: pa.Table | Mapping[str, list[object]]

    def __contains__(self, name: str | None) -> bool:
        """Return whether there is such a column."""
        return name in (
            self.columns.column_names if isinstance(self.columns, pa.Table) else self.columns
        )

    def arrow(self, name: str) -> pa.Array | None:
        """Return a column as Arrow holds it; None if it does not."""
        if not isinstance(self.columns, pa.Table) or name not in self:
            return None
        return self.columns.column(name).combine_chunks()

    def cells(self, name: str | None) -> list[Any]:
        """Return the cells of a column [n]; where there is no such column, all are empty."""
        if name is None or name not in self:
            return [None] * self.n_rows
        return (
            self.columns.column(name).to_pylist()
            if isinstance(self.columns, pa.Table)
            else self.columns[name]
        )

    def distinct(self, name: str | None) -> DistinctCells:
        """Return the different cells of a column; where there is no such column, all are empty."""
        if name is None or name not in self:
            return DistinctCells([None], np.zeros(self.n_rows, dtype=np.int64))
        held = self.arrow(name)
        if held is None or not _can_be_encoded(held.type):
            return DistinctCells(self.cells(name), np.arange(self.n_rows))
        encoded = held.dictionary_encode(null_encoding="encode")
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


BATCH_ROWS = 4096
IMAGE_BATCH_ROWS = 64
BLOCK_BYTES = 4 << 20
_MAX_HEADER_LENGTH = 1 << 20
_DELIMITERS = (",", ";", "\t", "|")
_QUOTED = re.compile(r'"[^"]*"')


@dataclass(frozen=True, kw_only=True)
class DelimitedTable:
    """A CSV or TSV file with a header line; semicolons, tabs and bars are recognised as delimiters of CSV files too."""

    location: str
    delimiter: str | None = None

    def header(self, problems: Problems) -> TableHeader:
        names = self._names()
        if not any(name.strip() for name in names):
            raise DataError(
                "The table is empty: there is no header line.", where=shown_location(self.location)
            )
        note_repeated(names, problems)
        return TableHeader(names=tuple(dict.fromkeys(names)), is_text=True)

    def batches(
        self, problems: Problems, *, start: int = 0, without: frozenset[str] = frozenset()
    ) -> Iterator[TableBatch]:
        """Yield rows, every cell as text; a row with too few or too many fields is a problem."""
        from pyarrow import csv as arrow_csv

        odd_rows: list[int] = []

        def leave_out(row: Any) -> str:
            odd_rows.append(row.number - 1)
            what = f"A row has {row.actual_columns} fields where the header has {row.expected_columns}."
            problems.add(what, row=f"row {row.number - 1}")
            return "skip"

        names = self._names()
        with _explain(self.location), open_location(self.location) as file:
            delimiter = self._delimiter_of(file)
            reader = arrow_csv.open_csv(
                file,
                read_options=arrow_csv.ReadOptions(block_size=BLOCK_BYTES, use_threads=False),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=delimiter, newlines_in_values=True, invalid_row_handler=leave_out
                ),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    include_columns=[name for name in names if name not in without],
                    strings_can_be_null=False,
                ),
            )
            for batch in _in_batches(reader, BATCH_ROWS, start):
                yield replace(batch, first_row=batch.first_row + len(odd_rows))

    def _names(self) -> list[str]:
        with _explain(self.location), open_location(self.location) as file:
            delimiter = self._delimiter_of(file)
            text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
            return next(filter(None, csv.reader(text, delimiter=delimiter)), [])

    def _delimiter_of(self, file: BinaryIO) -> str:
        """Return the mark that the header line has most of, outside quotes; a comma where two are as frequent."""
        # Files on remote storage read no line of a limited length.
        first = file.read(_MAX_HEADER_LENGTH).lstrip().split(b"\n", maxsplit=1)[0]
        file.seek(0)
        plain = _QUOTED.sub("", first.decode("utf-8", "replace"))
        return self.delimiter or max(_DELIMITERS, key=plain.count)


@dataclass(frozen=True, kw_only=True)
class JsonLinesTable:
    """A file with one JSON object a line; a column that a line lacks is empty there."""

    location: str

    def header(self, problems: Problems) -> TableHeader:
        """Return every name that occurs in any line, in the order of first appearance."""
        names: dict[str, None] = {}
        for record in self._records(problems):
            names.update(dict.fromkeys(record))
        if not names:
            raise DataError(
                "The table is empty: no line holds a JSON object.",
                where=shown_location(self.location),
            )
        return TableHeader(names=tuple(names))

    def batches(
        self,
        problems: Problems,  # noqa: ARG002 - the schema guarantees that every row can be read
        *,
        start: int = 0,
        without: frozenset[str] = frozenset(),
    ) -> Iterator[TableBatch]:
        """Yield rows; lines that are no JSON object were noted when the header was read."""
        records = islice(self._records(Problems()), start, None)
        row = start
        while block := list(islice(records, BATCH_ROWS)):
            names = [
                name
                for name in dict.fromkeys(name for record in block for name in record)
                if name not in without
            ]
            columns = {name: [record.get(name) for record in block] for name in names}
            yield TableBatch(first_row=row, n_rows=len(block), columns=columns)
            row += len(block)

    def _records(self, problems: Problems) -> Iterator[dict[str, object]]:
        with _explain(self.location), open_location(self.location) as file:
            for number, line in enumerate(file, start=1):
                text = line.decode("utf-8-sig").strip()
                record = _parse_json_line(text, problems, f"line {number}") if text else None
                if record is not None:
                    yield record


def _parse_json_line(text: str, problems: Problems, row: str) -> dict[str, object] | None:
    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if len({name for name, _ in pairs}) < len(pairs):
            problems.add("A JSON object has the same name twice.", row=row)
        return dict(pairs)

    try:
        record = json.loads(text, object_pairs_hook=unique)
    except (json.JSONDecodeError, RecursionError):
        record = None
    if not isinstance(record, dict):
        problems.add("A line is not a JSON object.", row=row)
        return None
    return record


@dataclass(frozen=True, kw_only=True)
class ParquetTable:
    """A Parquet file."""

    location: str

    def header(self, problems: Problems) -> TableHeader:
        with self._open() as file:
            return header_of_schema(file.schema_arrow, problems)

    def batches(
        self,
        problems: Problems,  # noqa: ARG002 - the schema guarantees that every row can be read
        *,
        start: int = 0,
        without: frozenset[str] = frozenset(),
    ) -> Iterator[TableBatch]:
        """Yield rows; row groups before `start` are not touched."""
        with self._open() as file:
            names = [name for name in file.schema_arrow.names if name not in without]
            groups, row = _groups_from(file.metadata, start)
            size = _batch_rows(file.schema_arrow, without)
            batches = file.iter_batches(
                batch_size=size, row_groups=groups, columns=names, use_threads=False
            )
            yield from _in_batches(batches, size, start, row)

    @contextmanager
    def _open(self) -> Iterator[Any]:
        import pyarrow.parquet as pq

        with (
            open_location(self.location) as raw,
            _explain(self.location),
            pq.ParquetFile(raw) as file,
        ):
            yield file


@dataclass(frozen=True, kw_only=True)
class ArrowTable:
    """An Arrow file in the stream or the file format."""

    location: str

    def header(self, problems: Problems) -> TableHeader:
        with self._open() as (schema, _):
            return header_of_schema(schema, problems)

    def batches(
        self,
        problems: Problems,  # noqa: ARG002 - the schema guarantees that every row can be read
        *,
        start: int = 0,
        without: frozenset[str] = frozenset(),
    ) -> Iterator[TableBatch]:
        with self._open() as (schema, batches):
            names = [name for name in schema.names if name not in without]
            yield from _in_batches(self._sound(batches, names), _batch_rows(schema, without), start)

    def _sound(
        self, batches: Iterator[pa.RecordBatch], names: list[str]
    ) -> Iterator[pa.RecordBatch]:
        size_before = self._size()
        for whole in batches:
            if self._size() < size_before:
                # Pages of a mapped file that are not there any more would end the process.
                raise OSError("the file became shorter while it was read")
            narrow = whole.select(names)
            # Offsets of a damaged file may point anywhere, and nothing looks at them before they are followed.
            narrow.validate(full=True)
            yield narrow

    def _size(self) -> int:
        return local_path(self.location).stat().st_size if is_local(self.location) else 0

    @contextmanager
    def _open(self) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
        raw = (
            pa.memory_map(str(local_path(self.location)))
            if is_local(self.location)
            else open_location(self.location)
        )
        with raw, _explain(self.location):
            if raw.read(6) == b"ARROW1":
                file = pa.ipc.open_file(raw)
                yield (
                    file.schema,
                    (file.get_batch(number) for number in range(file.num_record_batches)),
                )
            else:
                raw.seek(0)
                stream = pa.ipc.open_stream(raw)
                yield stream.schema, iter(stream)


def header_of_schema(schema: pa.Schema, problems: Problems) -> TableHeader:
    """Return the columns of an Arrow schema, with the class names that `datasets` keeps in it."""
    note_repeated(list(schema.names), problems)
    binary = frozenset(field.name for field in schema if _is_binary(field.type))
    images = frozenset(field.name for field in schema if _is_image(field.type))
    return TableHeader(
        names=tuple(dict.fromkeys(schema.names)),
        class_names=_class_names(schema),
        binary=binary,
        images=images,
    )


def class_names_of_features(features: object) -> dict[str, tuple[str, ...]]:
    """Return class names by column from the `features` that `datasets` writes as JSON."""
    found: dict[str, tuple[str, ...]] = {}
    for name, feature in features.items() if isinstance(features, dict) else ():
        inner = (
            feature.get("feature", feature)
            if isinstance(feature, dict)
            else feature[0]
            if isinstance(feature, list)
            else None
        )
        names = (
            inner.get("names")
            if isinstance(inner, dict) and inner.get("_type") == "ClassLabel"
            else None
        )
        if isinstance(names, list):
            found[name] = tuple(str(item) for item in names)
    return found


def _class_names(schema: pa.Schema) -> dict[str, tuple[str, ...]]:
    try:
        stored = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
    except ValueError:
        return {}
    info = stored.get("info") if isinstance(stored, dict) else None
    return class_names_of_features(info.get("features")) if isinstance(info, dict) else {}


def _is_binary(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _is_image(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind)) and {field.name for field in kind} == {"bytes", "path"}


def _batch_rows(schema: pa.Schema, without: frozenset[str]) -> int:
    heavy = any(
        _is_binary(field.type) or _is_image(field.type)
        for field in schema
        if field.name not in without
    )
    return IMAGE_BATCH_ROWS if heavy else BATCH_ROWS


def _groups_from(metadata: Any, start: int) -> tuple[list[int], int]:
    row = 0
    for group in range(metadata.num_row_groups):
        n_rows = metadata.row_group(group).num_rows
        if row + n_rows > start:
            return list(range(group, metadata.num_row_groups)), row
        row += n_rows
    return [], row


def _in_batches(
    batches: Iterable[pa.RecordBatch], n_rows: int, start: int, row: int = 0
) -> Iterator[TableBatch]:
    """Yield the rows from position `start` on, at most so many at a time; the first batch begins at position `row`."""
    for whole in batches:
        for begin in range(max(0, start - row), whole.num_rows, n_rows):
            part = pa.Table.from_batches([whole.slice(begin, n_rows)])
            yield TableBatch(first_row=row + begin, n_rows=part.num_rows, columns=part)
        row += whole.num_rows


@contextmanager
def _explain(location: str) -> Iterator[None]:
    try:
        yield
    except (
        pa.ArrowException,
        OSError,
        ValueError,
        TypeError,
        LookupError,
        OverflowError,
        csv.Error,
    ) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        fix = "Check that the file is complete and of the format its name says."
        if isinstance(error, UnicodeDecodeError) or "invalid UTF8" in said:
            what = "The table is not UTF-8 text."
            fix = "Save it with the encoding UTF-8 (in spreadsheets: CSV UTF-8)."
        elif "straddling" in said:
            what = f"The table cannot be read: a row is longer than {BLOCK_BYTES:,} bytes."
            fix = "Correct the quotes there; put large values into files, JSON lines or Parquet."
        else:
            what = f"The table cannot be read: {said}."
        raise DataError(what, where=shown_location(location), fix=fix) from error
