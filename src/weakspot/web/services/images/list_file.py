"""Chosen images as a table to download: file names first, so that whoever owns the files can find them."""

import csv
import io
from collections.abc import Iterable, Iterator

import pyarrow as pa

from weakspot.core.arrays import IntArray
from weakspot.media.locations import shown_location
from weakspot.web.services.images.choosing import ImageQuery, choose_images
from weakspot.web.services.images.page import list_images
from weakspot.web.services.samples.facts import files_of
from weakspot.web.services.workspace import Workspace

AT_ONCE = 2000
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def image_lines(workspace: Workspace, query: ImageQuery, *, with_paths: bool) -> Iterator[str]:
    """Return the lines of a CSV file: of the chosen images, in their order.

    Raises:
        DataError: if the query names what is not there.
    """
    chosen = choose_images(workspace, query)
    return _lines(workspace, chosen.rows, with_paths=with_paths)


def _lines(workspace: Workspace, rows: IntArray, *, with_paths: bool) -> Iterator[str]:
    header = ["file", *(["path"] if with_paths else []), "label", "prediction", "result", "id"]
    yield table_text([header])
    dataset = workspace.samples.dataset
    for start in range(0, len(rows), AT_ONCE):
        part = rows[start : start + AT_ONCE]
        files = files_of(workspace, part)
        places = dataset.table.column("location").take(pa.array(part)).to_pylist()
        yield table_text(
            [
                file,
                *([shown_location(place) if place else ""] if with_paths else []),
                one.label,
                one.answer,
                {None: "", True: "wrong", False: "right"}[one.is_failure],
                one.sample_id,
            ]
            for file, place, one in zip(files, places, list_images(workspace, part), strict=True)
        )


def bare_cell(cell: str) -> str:
    """Return a cell without the apostrophe that keeps a spreadsheet from taking it for a formula; its own ones stay.

    >>> bare_cell("'=sum"), bare_cell("'so called'")
    ('=sum', "'so called'")
    """
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA_STARTS) else cell


def table_text(lines: Iterable[list[str]]) -> str:
    """Return lines of a table; what a spreadsheet would take for a formula begins with an apostrophe."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    for cells in lines:
        writer.writerow(f"'{cell}" if cell.startswith(FORMULA_STARTS) else cell for cell in cells)
    return stream.getvalue()
