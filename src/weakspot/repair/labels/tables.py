"""Tables with a label column, as people and labelling tools write them."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from weakspot.core.errors import DataError

SAMPLE_ID = "sample_id"
IMAGE = "image"
LABEL = "label"
NAMES: Mapping[str, tuple[str, ...]] = {
    SAMPLE_ID: ("sample_id", "sample id"),
    IMAGE: ("image", "picture", "path", "location", "image_path", "file", "filename", "file_name"),
    LABEL: ("label", "labels"),
}
DELIMITERS = (",", ";", "\t", "|")
# Spreadsheets run what starts so; a quote before it makes it text, and a quote before a quote keeps it readable.
UNSAFE = ("=", "+", "-", "@", "\t", "\r", "'")


@dataclass(frozen=True, kw_only=True)
class LabelLine:
    """One line of a table.

    Args:
        number: its number in the file, for messages.
        cells: what it holds, by column; the columns that matter have the names above, whatever they are called in the file.
        fault: what is wrong with it, empty if it can be read.
    """

    number: int
    cells: Mapping[str, str]
    fault: str = ""

    @property
    def label(self) -> str:
        """Return the label as given, empty if there is none yet."""
        return self.cells.get(LABEL, "")


@dataclass(frozen=True, kw_only=True)
class LabelTable:
    """A table with its columns in order."""

    columns: tuple[str, ...]
    lines: tuple[LabelLine, ...]


def read_table(path: Path) -> LabelTable:
    """Read a table with the columns label and sample_id or image; the delimiter is recognised.

    Raises:
        DataError: if it cannot be read, or lacks these columns.
    """
    text = _text(path)
    first = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = max(
        DELIMITERS,
        key=lambda one: len(set(_known(next(csv.reader([first], delimiter=one), []))) & set(NAMES)),
    )
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        columns = _known(
            next((fields for fields in reader if any(field.strip() for field in fields)), [])
        )
        _refuse_columns(columns, path)
        lines = tuple(
            _line(reader.line_num, fields, columns)
            for fields in reader
            if any(field.strip() for field in fields)
        )
    except csv.Error as error:
        raise DataError(
            f"The table cannot be read: {error}.",
            where=f"{path}, line {reader.line_num}",
            fix="Correct the quotes there.",
        ) from error
    return LabelTable(columns=columns, lines=lines)


def table_bytes(columns: Sequence[str], lines: Iterable[Mapping[str, str]]) -> bytes:
    """Return a CSV table that no spreadsheet takes for formulas; marked as UTF-8 where that matters."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow(columns)
    writer.writerows([safe_cell(line.get(column, "")) for column in columns] for line in lines)
    text = stream.getvalue()
    return text.encode("utf-8" if text.isascii() else "utf-8-sig")


def safe_cell(text: str) -> str:
    """Return text that a spreadsheet shows and does not run.

    >>> safe_cell("=1+1"), safe_cell("a=1"), safe_cell("'tis")
    ("'=1+1", 'a=1', "''tis")
    """
    return f"'{text}" if text.startswith(UNSAFE) else text


def plain_cell(text: str) -> str:
    """Return what `safe_cell` was given.

    >>> plain_cell("'=1+1"), plain_cell("''tis"), plain_cell("'mine")
    ('=1+1', "'tis", "'mine")
    """
    return text[1:] if text.startswith("'") and text[1:].startswith(UNSAFE) else text


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            "The table is not UTF-8 text.",
            where=str(path),
            fix="Save it as CSV with the encoding UTF-8.",
        ) from error
    except OSError as error:
        raise DataError(
            f"The table cannot be read: {error.strerror}.",
            where=str(path),
            fix="Give the CSV file.",
        ) from error


def _known(names: Sequence[str]) -> tuple[str, ...]:
    """Return column names, those that matter under one name each; where several would do, the one that is listed first."""
    given = [name.strip() for name in names]
    lowered = [name.lower() for name in given]
    for role, accepted in NAMES.items():
        found = next((name for name in accepted if name in lowered), None)
        given = [role if name == found else old for name, old in zip(lowered, given, strict=True)]
    return tuple(given)


def _refuse_columns(columns: Sequence[str], path: Path) -> None:
    repeated = [name for name in NAMES if columns.count(name) > 1]
    if repeated:
        raise DataError(
            "A column occurs twice.", where=str(path), given=repeated, fix="Leave one of them."
        )
    if LABEL not in columns or not {SAMPLE_ID, IMAGE} & set(columns):
        raise DataError(
            "A table of labels needs the column label and one of sample_id and image.",
            where=str(path),
            given=list(columns),
            fix="Keep the header line of the list that was written.",
        )


def _line(number: int, fields: Sequence[str], columns: Sequence[str]) -> LabelLine:
    cells = dict(zip(columns, (plain_cell(field.strip()) for field in fields), strict=False))
    surplus = any(field.strip() for field in fields[len(columns) :])
    fault = f"it has {len(fields)} fields where the header has {len(columns)}" if surplus else ""
    return LabelLine(number=number, cells=cells, fault=fault)
