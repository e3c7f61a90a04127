"""Table files of any format (CSV, TSV, JSON lines, Parquet, Arrow): their columns, and their rows in batches."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import AnyArray
from weakspot.core.dataset import Split
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


@dataclass(frozen=True, kw_only=True)
class TableFile:
    """A table file that can be read again and again; its extension says of which format it is.

    Args:
        location: where the file is.
        name: written before row numbers; empty when the source is one file.
        split: split of its rows, when the file's place tells.
    """

    location: str
    name: str = ""
    split: Split | None = None

    @property
    def kind(self) -> str | None:
        """Return the format, None for one that is not read."""
        return TABLE_EXTENSIONS.get(file_extension(self.location))

    def header(self, problems: Problems) -> TableHeader:
        """Return the columns; what is wrong with them goes to `problems`."""
        if self.kind in _TEXT_DELIMITERS:
            return _delimited_header(self, problems)
        if self.kind == "jsonl":
            return _json_header(self.location, problems)
        with _opened(self) as (schema, _):
            return header_of_schema(schema, problems)

    def batches(
        self, problems: Problems, *, start: int = 0, without: frozenset[str] = frozenset()
    ) -> Iterator[TableBatch]:
        """Yield rows from `start` on, leaving out some columns; rows that cannot be read go to `problems`."""
        if self.kind in _TEXT_DELIMITERS:
            yield from _delimited_batches(self, problems, start, without)
        elif self.kind == "jsonl":
            yield from _json_batches(self.location, start, without)
        else:
            with _opened(self) as (schema, read):
                names = [name for name in schema.names if name not in without]
                size = _batch_rows(schema, without)
                row, batches = read(names, start, size)
                yield from _in_batches(batches, size, start, row)


def file_extension(location: str) -> str:
    """Return the extension of a file, that inside an archive if it is in one."""
    return PurePosixPath(location.partition("::")[0]).suffix.lower()


def note_repeated(names: list[str], problems: Problems) -> None:
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            problems.add(f"The column {name!r} is there {names.count(name)} times.")


BATCH_ROWS = 4096
IMAGE_BATCH_ROWS = 64
BLOCK_BYTES = 4 << 20
_MAX_HEADER_LENGTH = 1 << 20
_TEXT_DELIMITERS = {"csv": (",", ";", "\t", "|"), "tsv": ("\t",)}
_QUOTED = re.compile(r'"[^"]*"')


def _delimited_header(table: TableFile, problems: Problems) -> TableHeader:
    names = _column_names(table)
    if not any(name.strip() for name in names):
        raise DataError(
            "The table is empty: there is no header line.", where=shown_location(table.location)
        )
    note_repeated(names, problems)
    return TableHeader(names=tuple(dict.fromkeys(names)), is_text=True)


def _delimited_batches(
    table: TableFile, problems: Problems, start: int, without: frozenset[str]
) -> Iterator[TableBatch]:
    """Yield rows, every cell as text; a row with too few or too many fields is a problem."""
    from pyarrow import csv as arrow_csv

    odd_rows: list[int] = []

    def leave_out(row: Any) -> str:
        odd_rows.append(row.number - 1)
        what = f"A row has {row.actual_columns} fields where the header has {row.expected_columns}."
        problems.add(what, row=f"row {row.number - 1}")
        return "skip"

    names = _column_names(table)
    with _explain(table.location), open_location(table.location) as file:
        delimiter = _delimiter_of(table, file)
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


def _column_names(table: TableFile) -> list[str]:
    with _explain(table.location), open_location(table.location) as file:
        delimiter = _delimiter_of(table, file)
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        return next(filter(None, csv.reader(text, delimiter=delimiter)), [])


def _delimiter_of(table: TableFile, file: BinaryIO) -> str:
    """Return the mark that the header line has most of, outside quotes; the first of those that are as frequent."""
    # Files on remote storage read no line of a limited length.
    first = file.read(_MAX_HEADER_LENGTH).lstrip().split(b"\n", maxsplit=1)[0]
    file.seek(0)
    plain = _QUOTED.sub("", first.decode("utf-8", "replace"))
    return max(_TEXT_DELIMITERS[table.kind or ""], key=plain.count)


def _json_header(location: str, problems: Problems) -> TableHeader:
    """Return every name that occurs in any line, in the order of first appearance."""
    names: dict[str, None] = {}
    for record in _json_records(location, problems):
        names.update(dict.fromkeys(record))
    if not names:
        raise DataError(
            "The table is empty: no line holds a JSON object.", where=shown_location(location)
        )
    return TableHeader(names=tuple(names))


def _json_batches(location: str, start: int, without: frozenset[str]) -> Iterator[TableBatch]:
    """Yield rows; lines that are no JSON object were noted when the header was read. What a line lacks is empty there."""
    records = islice(_json_records(location, Problems()), start, None)
    while block := list(islice(records, BATCH_ROWS)):
        names = dict.fromkeys(name for record in block for name in record if name not in without)
        columns = {name: [record.get(name) for record in block] for name in names}
        yield TableBatch(first_row=start, n_rows=len(block), columns=columns)
        start += len(block)


def _json_records(location: str, problems: Problems) -> Iterator[dict[str, object]]:
    with _explain(location), open_location(location) as file:
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


ReadBatches = Callable[[list[str], int, int], tuple[int, Iterable[pa.RecordBatch]]]
"""Takes column names, the first row that is wanted and rows a batch; gives batches, and at which row they begin."""


def _opened(table: TableFile) -> AbstractContextManager[tuple[pa.Schema, ReadBatches]]:
    return (_opened_parquet if table.kind == "parquet" else _opened_arrow)(table.location)


@contextmanager
def _opened_parquet(location: str) -> Iterator[tuple[pa.Schema, ReadBatches]]:
    """Open a Parquet file; row groups before the first row that is wanted are not touched."""
    import pyarrow.parquet as pq

    with open_location(location) as raw, _explain(location), pq.ParquetFile(raw) as file:

        def read(names: list[str], start: int, size: int) -> tuple[int, Iterable[pa.RecordBatch]]:
            groups, row = _groups_from(file.metadata, start)
            return row, file.iter_batches(
                batch_size=size, row_groups=groups, columns=names, use_threads=False
            )

        yield file.schema_arrow, read


@contextmanager
def _opened_arrow(location: str) -> Iterator[tuple[pa.Schema, ReadBatches]]:
    """Open an Arrow file in the stream or the file format."""
    path = local_path(location) if is_local(location) else None
    raw = pa.memory_map(str(path)) if path is not None else open_location(location)
    with raw, _explain(location):
        if raw.read(6) == b"ARROW1":
            file = pa.ipc.open_file(raw)
            schema = file.schema
            batches = (file.get_batch(number) for number in range(file.num_record_batches))
        else:
            raw.seek(0)
            stream = pa.ipc.open_stream(raw)
            schema, batches = stream.schema, iter(stream)
        yield schema, lambda names, _start, _size: (0, _sound(batches, names, path))


def _sound(
    batches: Iterable[pa.RecordBatch], names: list[str], path: Path | None
) -> Iterator[pa.RecordBatch]:
    size_before = path.stat().st_size if path is not None else 0
    for whole in batches:
        if path is not None and path.stat().st_size < size_before:
            # Pages of a mapped file that are not there any more would end the process.
            raise OSError("the file became shorter while it was read")
        narrow = whole.select(names)
        # Offsets of a damaged file may point anywhere, and nothing looks at them before they are followed.
        narrow.validate(full=True)
        yield narrow


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


def _class_names(schema: pa.Schema) -> dict[str, tuple[str, ...]]:
    """Return class names by column from the `features` that `datasets` writes as JSON beside the schema."""
    try:
        stored = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
    except ValueError:
        return {}
    features = _member(_member(stored, "info"), "features")
    found: dict[str, tuple[str, ...]] = {}
    for name, feature in features.items() if isinstance(features, dict) else ():
        inner = feature[0] if isinstance(feature, list) else _member(feature, "feature") or feature
        names = _member(inner, "names")
        if _member(inner, "_type") == "ClassLabel" and isinstance(names, list):
            found[name] = tuple(str(item) for item in names)
    return found


def _member(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, dict) else None


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
