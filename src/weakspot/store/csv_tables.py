"""CSV files: the one place that writes them, so that no spreadsheet runs what a class or a file is called."""

import csv
import re
from collections.abc import Iterable, Sequence

# Spreadsheets run what starts so; a quote before it makes it text, and a quote before a quote keeps it readable.
UNSAFE = ("=", "+", "-", "@", "\t", "\r", "'")
_NEGATIVE_NUMBER = re.compile(r"-[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")


class _Lines(list[str]):
    """Lines that end in a line feed, written as if they ended in CR LF: only then `csv` quotes a carriage return in a cell."""

    def write(self, line: str) -> None:
        self.append(line.removesuffix("\r\n") + "\n")


def csv_text(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    delimiter: str = ",",
    is_data: bool = False,
) -> str:
    r"""Return a CSV table whose texts no spreadsheet takes for formulas.

    Args:
        columns: the header line; without any, no header is written.
        rows: one cell a column each; numbers stay numbers, None is empty.
        delimiter: between cells.
        is_data: the table is a source of samples, which programs read letter by letter: no cell is changed.

    >>> csv_text(["class", "gap"], [["=1+1", "-0.5"], [None, -2]])
    "class,gap\n'=1+1,-0.5\n,-2\n"
    """
    lines = _Lines()
    writer = csv.writer(lines, delimiter=delimiter, lineterminator="\r\n")
    for cells in [columns, *rows] if columns else rows:
        writer.writerow(
            cells
            if is_data
            else [safe_cell(cell) if isinstance(cell, str) else cell for cell in cells]
        )
    return "".join(lines)


def safe_cell(text: str) -> str:
    """Return text that a spreadsheet shows and does not run.

    >>> safe_cell("=1+1"), safe_cell("a=1"), safe_cell("'tis"), safe_cell("-0.5")
    ("'=1+1", 'a=1', "''tis", '-0.5')
    """
    return f"'{text}" if text.startswith(UNSAFE) and not _NEGATIVE_NUMBER.fullmatch(text) else text


def plain_cell(text: str) -> str:
    """Return what `safe_cell` took.

    >>> plain_cell("'=1+1"), plain_cell("''tis"), plain_cell("'mine")
    ('=1+1', "'tis", "'mine")
    """
    return text[1:] if text.startswith("'") and text[1:].startswith(UNSAFE) else text
