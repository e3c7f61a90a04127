"""CSV, TSV and JSON-lines files as tables."""

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import BinaryIO

import pyarrow as pa

from weakspot.core.errors import DataError
from weakspot.ingest.csv_blocks import IrregularTextError, read_csv_blocks
from weakspot.ingest.problems import Problems
from weakspot.ingest.tables import (
    ArrowColumns,
    TableBatch,
    TableHeader,
    note_repeated,
    rows_at_once,
)
from weakspot.media.locations import explained, open_location, shown_location

BATCH_ROWS = 4096
_LONGEST_HEADER = 1 << 20
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
            first = file.read(_LONGEST_HEADER).split(b"\n", maxsplit=1)[0]
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
                first = text.readline(_LONGEST_HEADER)
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
        problems: Problems,  # noqa: ARG002 - lines that are no JSON object were noted with the header
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
                record = _parse(text, problems, f"line {number}")
                if record is not None:
                    yield number, record


def _whole_lines(file: BinaryIO, location: str) -> Iterator[bytes]:
    try:
        yield from file
    except OSError as error:
        raise explained(error, location) from error


def _parse(text: str, problems: Problems, row: str) -> dict[str, object] | None:
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
