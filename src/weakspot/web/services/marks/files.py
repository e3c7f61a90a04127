"""Marks as files: a table for people and scripts, the files of other tools, and both read back."""

import csv
import io
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from weakspot.core.dataset import Dataset
from weakspot.core.errors import DataError
from weakspot.core.given_labels import names_at
from weakspot.integrations.bundle import ListedSample, Written
from weakspot.integrations.cleanlab_files import write_marked_issues
from weakspot.integrations.exchange import exchange_bundle, import_from, write_bundle
from weakspot.media.locations import shown_location
from weakspot.project.project import Project
from weakspot.web.services.images.list_file import bare_cell, table_text
from weakspot.web.services.mark_book import ALONE, Mark, MarkBook, MarkKind
from weakspot.web.services.marks.requests import clean_text
from weakspot.web.services.samples.facts import names_of

MarkTool = Literal["csv", "label-studio", "cvat", "cleanlab"]
TOOLS: tuple[MarkTool, ...] = ("csv", "label-studio", "cvat", "cleanlab")
TABLE = "marks.csv"
COLUMNS = ("file", "path", "sample_id", "label", "mark", "right_label", "text", "by", "time")
BETWEEN = "|"


def _rows(dataset: Dataset, book: MarkBook) -> Iterator[tuple[int, str, tuple[Mark, ...]]]:
    """Return row, id and marks of all marked samples that are there, in the order of the data."""
    for row, sample_id in enumerate(dataset.table.column("sample_id").to_pylist()):
        if marks := book.of(sample_id):
            yield row, sample_id, marks


def marks_table(dataset: Dataset, book: MarkBook, *, with_paths: bool) -> str:
    """Return all marks as CSV, one line a mark; a cell that a spreadsheet would take for a formula begins with an apostrophe."""
    found = list(_rows(dataset, book))
    rows = np.array([row for row, _, _ in found], dtype=np.int64)
    places = dataset.table.column("location").take(pa.array(rows)).to_pylist()
    names = names_of(dataset, rows)
    lines = [list(COLUMNS) if with_paths else [one for one in COLUMNS if one != "path"]]
    for (row, sample_id, marks), place, name in zip(found, places, names, strict=True):
        label = BETWEEN.join(names_at(dataset, row) or ())
        path = [shown_location(place) if place else ""] if with_paths else []
        for one in marks:
            right = BETWEEN.join(one.labels)
            told = [one.kind.value, right, one.text, one.by, one.time]
            lines.append([name, *path, sample_id, label, *told])
    return table_text(lines)


def write_marks(project: Project, book: MarkBook, tool: MarkTool, folder: Path) -> Written:
    """Write marked samples for another tool, or as a table.

    Raises:
        DataError: if nothing is marked that the tool is for.
    """
    dataset = project.store.dataset()
    if tool == "csv":
        return _write_table(dataset, book, folder)
    listed = tuple(
        ListedSample(row=row, why="; ".join(_told(one) for one in marks), suggested=_right(marks))
        for row, _, marks in _rows(dataset, book)
    )
    if not listed:
        raise DataError("No image is marked.", fix="Mark some in the browser first.")
    bundle = replace(exchange_bundle(project), to_label=listed)
    written = write_bundle(bundle, tool, folder)
    if tool != "cleanlab":
        return written
    issues = write_marked_issues(bundle, folder)
    return replace(written, files=(issues, *written.files))


def _write_table(dataset: Dataset, book: MarkBook, folder: Path) -> Written:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / TABLE
    path.write_text(marks_table(dataset, book, with_paths=True), encoding="utf-8")
    return Written(files=(path,), sentence=f"{sum(map(len, book.by_sample.values()))} marks.")


def _told(mark: Mark) -> str:
    return f"{mark.words} ({mark.by})"


def _right(marks: tuple[Mark, ...]) -> tuple[str, ...]:
    return tuple(name for one in marks if one.kind is MarkKind.LABEL for name in one.labels)


def zip_marks(project: Project, book: MarkBook, tool: MarkTool) -> bytes:
    """Return the files for another tool as a zip archive, with a note on what to do with them."""
    with tempfile.TemporaryDirectory(prefix="weakspot-marks-") as name:
        folder = Path(name)
        written = write_marks(project, book, tool, folder)
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(one for one in folder.rglob("*") if one.is_file()):
                archive.write(path, path.relative_to(folder).as_posix())
            archive.writestr("README.txt", written.sentence.replace(f"{folder}/", "") + "\n")
        return stream.getvalue()


@dataclass(frozen=True, kw_only=True)
class ReadMark:
    """What a file says of a sample.

    Args:
        row: which sample.
        kind: what is said.
        labels: the right labels.
        text: of a note or a tag.
    """

    row: int
    kind: MarkKind
    labels: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True, kw_only=True)
class ReadMarks:
    """What a file says.

    Args:
        marks: of samples that are there, and that differ from the labels that they have.
        n_same: lines that give a sample the label that it has.
        n_unknown: lines about samples or classes that are not there.
    """

    marks: tuple[ReadMark, ...]
    n_same: int
    n_unknown: int


def read_marks(dataset: Dataset, tool: MarkTool, source: Path) -> ReadMarks:
    """Read what another tool, or a table, says of samples: a label other than the present one is a mark that it is wrong.

    Raises:
        DataError: if the file is none of that tool, or says nothing of samples.
    """
    table = source
    with tempfile.TemporaryDirectory(prefix="weakspot-marks-") as name:
        if tool == "cleanlab":
            raise DataError(
                "Issues of cleanlab name suspects, not right labels.",
                fix="weakspot import --from cleanlab, or a CSV with sample_id and right_label.",
            )
        if tool != "csv":
            table = import_from(tool, source, Path(name) / "labels.csv").files[0]
        try:
            text = table.read_text(encoding="utf-8-sig")
            lines = list(csv.DictReader(io.StringIO(text, newline="")))
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise DataError("This is no CSV in UTF-8.", where=source.name) from error
    return _read_lines(dataset, lines, source)


def _read_lines(dataset: Dataset, lines: list[dict[str, str]], source: Path) -> ReadMarks:
    if not lines or not {"sample_id", "id"} & set(lines[0]):
        raise DataError(
            "The table has no column sample_id.",
            where=source.name,
            given=", ".join(map(str, lines[0])) if lines else "no line",
            fix="Give sample_id and right_label, as the download of marks has them.",
        )
    known = {name: row for row, name in enumerate(dataset.sample_ids())}
    marks: list[ReadMark] = []
    n_same = n_unknown = 0
    for line in lines:
        row = known.get((line.get("sample_id") or line.get("id") or "").strip())
        read = None if row is None else _mark_of(line, row)
        if row is None or read is None or not set(read.labels) <= set(dataset.class_names):
            n_unknown += 1
        elif read.kind is MarkKind.LABEL and set(read.labels) == set(names_at(dataset, row) or ()):
            n_same += 1
        else:
            marks.append(read)
    return ReadMarks(marks=tuple(marks), n_same=n_same, n_unknown=n_unknown)


def _mark_of(line: dict[str, str], row: int) -> ReadMark | None:
    """Return what a line says; of a table without a column for marks, the label is meant as the right one."""
    given = (line.get("mark") or "").strip().lower()
    right = line.get("right_label") if "right_label" in line else line.get("label")
    labels = tuple(one for one in bare_cell(right or "").split(BETWEEN) if one)
    text = clean_text(bare_cell(line.get("text") or ""))
    if given in ("", MarkKind.LABEL.value):
        return ReadMark(row=row, kind=MarkKind.LABEL, labels=labels) if labels or given else None
    if given not in [kind.value for kind in MarkKind]:
        return None
    kind = MarkKind(given)
    if kind in ALONE:
        return ReadMark(row=row, kind=kind)
    return ReadMark(row=row, kind=kind, text=text) if text else None
