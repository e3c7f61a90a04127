"""CSV files: the one place that writes them, so that no spreadsheet runs what a class or a file is called."""

import csv
import io
import re
from collections.abc import Iterable, Sequence

# Spreadsheets run what starts so; a quote before it makes it text, and a quote before a quote keeps it readable.
UNSAFE = ("=", "+", "-", "@", "\t", "\r", "'")
_NEGATIVE_NUMBER = re.compile(r"-[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")


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
    lines = []
    for cells in [columns, *rows] if columns else rows:
        line = io.StringIO()
        # Lines end in a line feed, but `csv` quotes a carriage return in a cell only if they end in CR LF.
        csv.writer(line, delimiter=delimiter, lineterminator="\r\n").writerow(
            cells
            if is_data
            else [safe_cell(cell) if isinstance(cell, str) else cell for cell in cells]
        )
        lines.append(line.getvalue().removesuffix("\r\n") + "\n")
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
