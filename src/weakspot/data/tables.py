"""Table files of any format (CSV, TSV, JSON lines, Parquet, Arrow): their columns, and their rows in batches."""

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, BinaryIO, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import AnyArray, BoolArray
from weakspot.core.errors import DataError
from weakspot.data.locations import explained, is_local, local_path, open_location, shown_location
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


BLOCK_BYTES = 4 << 20
_BOM = b"\xef\xbb\xbf"
_QUOTE, _NEWLINE, _RETURN, _NUL = (ord(one) for one in '"\n\r\0')


class IrregularTextError(Exception):
    """The text has something that the two may read differently."""


def read_csv_blocks(
    file: BinaryIO, names: Sequence[str], *, delimiter: str, wanted: Sequence[str]
) -> Iterator[pa.Table]:
    """Yield rows after the header, all as text, some thousands at a time.

    Args:
        file: at its beginning.
        names: what the header says.
        delimiter: between fields.
        wanted: which columns.

    Raises:
        IrregularTextError: for quotes inside fields, rows that do not fit the header, very long fields, lone carriage returns,
            text that is not UTF-8; rows that were yielded before stand.
    """
    is_first = True
    for block in _whole_rows(file, delimiter):
        columns = names if is_first else wanted
        rows = _parse_csv(block, names, columns, delimiter)
        if is_first and rows.num_rows:
            if [column[0].as_py() for column in rows.columns] != list(names):
                raise IrregularTextError
            rows, is_first = rows.slice(1).select(list(wanted)), False
        if rows.num_rows:
            yield rows


def _whole_rows(file: BinaryIO, delimiter: str) -> Iterator[bytes]:
    rest = file.read(len(_BOM))
    rest = b"" if rest == _BOM else rest
    while block := file.read(BLOCK_BYTES):
        rest += block
        cut = _checked_end(rest, delimiter, is_last=False)
        if cut:
            yield rest[:cut]
            rest = rest[cut:]
        elif len(rest) > BLOCK_BYTES:
            raise IrregularTextError
    if rest:
        _checked_end(rest, delimiter, is_last=True)
        yield rest


def _checked_end(text: bytes, delimiter: str, *, is_last: bool) -> int:
    """Return where the last whole row ends.

    Raises:
        IrregularTextError: see `read_csv_blocks`.
    """
    letters = np.frombuffer(text, dtype=np.uint8)
    quotes = np.flatnonzero(letters == _QUOTE)
    ends = np.flatnonzero(letters == _NEWLINE)
    if len(quotes):
        # A line ends a row where as many quotes were closed as opened before it.
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
    stop = len(text) if is_last else int(ends[-1]) + 1 if len(ends) else 0
    quotes = quotes[: np.searchsorted(quotes, stop)]
    lengths = np.diff(ends, prepend=-1, append=stop)
    is_odd = (
        len(quotes) % 2 == 1
        or b"\0" in text
        or not _are_at_edges(letters, quotes, stop, ord(delimiter))
        or text[:stop].count(b"\r") != text[:stop].count(b"\r\n")
        # In bytes, which are never fewer than the letters that `csv` counts.
        or int(lengths.max(initial=0)) >= csv.field_size_limit()
    )
    if is_odd:
        raise IrregularTextError
    return stop


def _are_at_edges(letters: AnyArray, quotes: AnyArray, stop: int, delimiter: int) -> bool:
    """Return whether every quote opens or closes a whole field, or stands for itself by being there twice."""
    if not len(quotes):
        return True
    opening, closing = quotes[::2], quotes[1::2]
    before = np.where(opening > 0, letters[opening - 1], _NEWLINE)
    after = np.where(closing + 1 < stop, letters[np.minimum(closing + 1, stop - 1)], _NEWLINE)
    return bool(_is_edge(before, delimiter).all() and _is_edge(after, delimiter).all())


def _is_edge(letters: AnyArray, delimiter: int) -> BoolArray:
    return np.isin(letters, [delimiter, _NEWLINE, _RETURN, _QUOTE])


def _parse_csv(
    text: bytes, names: Sequence[str], wanted: Sequence[str], delimiter: str
) -> pa.Table:
    from pyarrow import csv as arrow_csv

    try:
        return arrow_csv.read_csv(
            io.BytesIO(text),
            # One block: rows keep their order and columns are in one piece.
            read_options=arrow_csv.ReadOptions(
                column_names=list(names), block_size=len(text) + 1, use_threads=False
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                include_columns=list(wanted),
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        raise IrregularTextError from error


BATCH_ROWS = 4096
_MAX_HEADER_LENGTH = 1 << 20
_DELIMITERS = (",", ";", "\t", "|")
_QUOTED = re.compile(r'"[^"]*"')


@dataclass(frozen=True, kw_only=True)
class DelimitedTable:
    """A CSV or TSV file with a header line; semicolons, tabs and bars are recognised as delimiters of CSV files too."""

    location: str
    delimiter: str | None = None

    def header(self, problems: Problems) -> TableHeader:
        names = next(self._lines(), None)
        if not names or not any(name.strip() for name in names):
            raise DataError(
                "The table is empty: there is no header line.", where=shown_location(self.location)
            )
        note_repeated(names, problems)
        return TableHeader(names=tuple(dict.fromkeys(names)), is_text=True)

    def batches(
        self, problems: Problems, *, start: int = 0, without: frozenset[str] = frozenset()
    ) -> Iterator[TableBatch]:
        """Yield rows; a row with too few or too many fields is a problem."""
        row = start
        try:
            for columns in rows_at_once(self._regular_rows(without), start, BATCH_ROWS):
                yield TableBatch(
                    first_row=row, n_rows=columns.num_rows, columns=ArrowColumns(columns)
                )
                row += columns.num_rows
        except (IrregularTextError, OSError):
            yield from self._listed_batches(problems, row, without)

    def _regular_rows(self, without: frozenset[str]) -> Iterator[pa.Table]:
        names = next(self._lines(), [])
        wanted = [name for name in names if name not in without]
        if len(set(names)) < len(names) or not wanted:
            raise IrregularTextError
        with open_location(self.location) as file:
            # Files on remote storage read no line of a limited length.
            first = file.read(_MAX_HEADER_LENGTH).split(b"\n", maxsplit=1)[0]
            file.seek(0)
            delimiter = self._delimiter_in(first.decode("utf-8", "replace"))
            yield from read_csv_blocks(file, names, delimiter=delimiter, wanted=wanted)

    def _delimiter_in(self, first: str) -> str:
        """Return the mark that the header line has most of, outside quotes; a comma where two are as frequent."""
        plain = _QUOTED.sub("", first)
        return self.delimiter or max(_DELIMITERS, key=plain.count)

    def _listed_batches(
        self, problems: Problems, row: int, without: frozenset[str]
    ) -> Iterator[TableBatch]:
        lines = self._lines()
        names = next(lines, [])
        lines = islice(lines, row, None)
        while block := list(islice(lines, BATCH_ROWS)):
            good = []
            for number, fields in enumerate(block, start=row + 1):
                if len(fields) == len(names):
                    good.append(fields)
                else:
                    problems.add(
                        f"A row has {len(fields)} fields where the header has {len(names)}.",
                        row=f"row {number}",
                    )
            columns: dict[str, list[object]] = {
                name: [fields[place] for fields in good]
                for place, name in enumerate(names)
                if name not in without
            }
            yield TableBatch(first_row=row, n_rows=len(good), columns=columns)
            row += len(block)

    def _lines(self) -> Iterator[list[str]]:
        with (
            open_location(self.location) as file,
            io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text,
        ):
            try:
                first = text.readline(_MAX_HEADER_LENGTH)
                text.seek(0)
                reader = csv.reader(text, delimiter=self._delimiter_in(first))
                yield from (fields for fields in reader if fields)
            except UnicodeDecodeError as error:
                raise _not_utf8(self.location) from error
            except OSError as error:
                raise explained(error, self.location) from error
            except csv.Error as error:
                raise DataError(
                    f"The table cannot be read: {error}.",
                    where=f"{shown_location(self.location)}, line {reader.line_num}",
                    fix="Correct the quotes there; put large values into files, JSON lines or Parquet.",
                ) from error


@dataclass(frozen=True, kw_only=True)
class JsonLinesTable:
    """A file with one JSON object a line; a column that a line lacks is empty there."""

    location: str

    def header(self, problems: Problems) -> TableHeader:
        """Return every name that occurs in any line, in the order of first appearance."""
        names: dict[str, None] = {}
        for _, record in self._records(problems):
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
        records = islice((record for _, record in self._records(Problems())), start, None)
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

    def _records(self, problems: Problems) -> Iterator[tuple[int, dict[str, object]]]:
        with open_location(self.location) as file:
            for number, line in enumerate(_whole_lines(file, self.location), start=1):
                text = _decode(line, self.location).strip()
                if not text:
                    continue
                record = _parse_json_line(text, problems, f"line {number}")
                if record is not None:
                    yield number, record


def _whole_lines(file: BinaryIO, location: str) -> Iterator[bytes]:
    try:
        yield from file
    except OSError as error:
        raise explained(error, location) from error


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


def _decode(line: bytes, location: str) -> str:
    try:
        return line.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _not_utf8(location) from error


def _not_utf8(location: str) -> DataError:
    return DataError(
        "The table is not UTF-8 text.",
        where=shown_location(location),
        fix="Save it with the encoding UTF-8 (in spreadsheets: CSV UTF-8).",
    )


IMAGE_BATCH_ROWS = 64


@dataclass(frozen=True, kw_only=True)
class ParquetTable:
    """A Parquet file."""

    location: str

    def header(self, problems: Problems) -> TableHeader:
        with self._open() as file:
            return header_of_schema(file.schema_arrow, problems)

    def count(self) -> int:
        with self._open() as file:
            return int(file.metadata.num_rows)

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
            for found in file.iter_batches(
                batch_size=size, row_groups=groups, columns=names, use_threads=False
            ):
                yield from _batch_from(found, row, start)
                row += found.num_rows

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

    def count(self) -> int:
        with self._open() as (_, batches):
            return sum(batch.num_rows for batch in batches)

    def batches(
        self,
        problems: Problems,  # noqa: ARG002 - the schema guarantees that every row can be read
        *,
        start: int = 0,
        without: frozenset[str] = frozenset(),
    ) -> Iterator[TableBatch]:
        with self._open() as (schema, batches):
            names = [name for name in schema.names if name not in without]
            size = _batch_rows(schema, without)
            row = 0
            size_before = self._size()
            for whole in batches:
                if self._size() < size_before:
                    # Pages of a mapped file that are not there any more would end the process.
                    raise OSError("the file became shorter while it was read")
                narrow = whole.select(names)
                # Offsets of a damaged file may point anywhere, and nothing looks at them before they are followed.
                narrow.validate(full=True)
                for begin in range(0, whole.num_rows, size):
                    yield from _batch_from(narrow.slice(begin, size), row + begin, start)
                row += whole.num_rows

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


def _batch_from(found: pa.RecordBatch, row: int, start: int) -> Iterator[TableBatch]:
    kept = found.slice(max(0, start - row))
    if kept.num_rows:
        columns = ArrowColumns(pa.Table.from_batches([kept]))
        yield TableBatch(first_row=max(row, start), n_rows=kept.num_rows, columns=columns)


@contextmanager
def _explain(location: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, TypeError, LookupError, OverflowError) as error:
        raise DataError(
            f"The table cannot be read: {(str(error).splitlines() or [type(error).__name__])[0]}.",
            where=shown_location(location),
            fix="Check that the file is complete and of the format its name says.",
        ) from error
