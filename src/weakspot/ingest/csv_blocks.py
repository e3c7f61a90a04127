"""CSV text that Arrow and Python's `csv` read alike, in large blocks by Arrow; anything else is told apart before it is read."""

import csv
import io
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import AnyArray, BoolArray

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
        rows = _parse(block, names, columns, delimiter)
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


def _parse(text: bytes, names: Sequence[str], wanted: Sequence[str], delimiter: str) -> pa.Table:
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
