"""What people say of single samples: a wrong label, no use, a note, a tag; as requests, files, and labels.

Only applied marks count, and only for samples that prove nothing.
"""

import csv
import io
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, JsonValue, StringConstraints, TypeAdapter

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import Dataset, Names, Task, names_at
from weakspot.core.errors import DataError, StoreError
from weakspot.data.locations import shown_location
from weakspot.project.project import Project
from weakspot.run.halves import used_rows
from weakspot.store.corrections import Correction
from weakspot.store.csv_tables import csv_text, plain_cell
from weakspot.tools.bundle import ListedSample, Written
from weakspot.tools.cleanlab import write_marked_issues
from weakspot.tools.exchange import exchange_bundle, import_from, write_bundle
from weakspot.web.services.images import (
    ImageQuery,
    choose_images,
    visible_samples,
)
from weakspot.web.services.samples import files_of, names_of
from weakspot.web.services.view import View
from weakspot.web.services.workspace import ALONE, Mark, MarkBook, MarkKind, NewMark, Workspace

MAX_MARKED = 20_000
MAX_ROW = 2**53
MAX_LABELS = 200
MAX_NOTE_LENGTH, MAX_LABEL_LENGTH = 500, 1000

Row = Annotated[int, Field(ge=0, le=MAX_ROW)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_NOTE_LENGTH)]


class MeantSamples(View):
    """Samples that somebody means: rows, or everything that a query chooses.

    Args:
        rows: row numbers.
        tables: what the row numbers refer to.
        query: which images, if no rows are given.
    """

    rows: list[Row] = Field(default=[], max_length=MAX_MARKED)
    tables: Annotated[str, Field(max_length=200)] = ""
    query: ImageQuery | None = None


class MarkRequest(MeantSamples, NewMark):
    """What is said of which samples."""

    labels: list[Annotated[str, Field(max_length=MAX_LABEL_LENGTH)]] = Field(
        default=[], max_length=MAX_LABELS
    )
    text: Text = ""


class MarkRemoval(MeantSamples):
    """Marks that are taken back.

    Args:
        kind: only those of a kind; all if none is named.
        text: only the note or tag with this text.
    """

    kind: MarkKind | None = None
    text: Text | None = None


def meant_rows(workspace: Workspace, meant: MeantSamples) -> IntArray:
    """Return the rows that are meant.

    Raises:
        StoreError: if the samples have changed since.
        DataError: if there are none or too many, or nobody may look at one of them.
    """
    if meant.query is not None:
        rows = choose_images(workspace, meant.query).rows
    else:
        if meant.tables != workspace.tables_key:
            raise StoreError(
                "The samples have changed since this page was loaded.", fix="Load the page again."
            )
        rows = np.unique(np.array(meant.rows, dtype=np.int64))
        seen = visible_samples(workspace)
        if not np.isin(rows, seen.rows).all():
            raise DataError(
                "Among these are samples that nobody may look at.",
                where="rows",
                fix="Images of the confirmation half and of the test split are shown to nobody.",
            )
    if not len(rows):
        raise DataError("No image is meant.", fix="Pick at least one.")
    if len(rows) > MAX_MARKED:
        raise DataError(
            f"At most {MAX_MARKED:,} images can be meant at once.",
            given=len(rows),
            fix="Choose fewer, for example by a filter.",
        )
    return rows


def check_mark(workspace: Workspace, asked: NewMark) -> NewMark:
    """Return what is said in the form in which it is kept.

    Raises:
        DataError: if it names a class that is not there, several where there is one, or says nothing.
    """
    dataset = workspace.samples.dataset
    labels = list(dict.fromkeys(asked.labels)) if asked.kind is MarkKind.LABEL else []
    for name in labels:
        dataset.class_code(name)
    if dataset.task is Task.SINGLE_LABEL and len(labels) > 1:
        raise DataError("An image has one label here.", where="labels", given=labels)
    has_text = asked.kind in (MarkKind.NOTE, MarkKind.TAG)
    if has_text and not asked.text:
        raise DataError(f"A {asked.kind.value} needs words.", where="text")
    if has_text and not asked.text.isprintable():
        raise DataError("Only words, in one line.", where="text")
    return NewMark(kind=asked.kind, labels=labels, text=asked.text if has_text else "")


def clean_text(text: str) -> str:
    r"""Return words of a file as people could have typed them: in one line, and not too long.

    >>> clean_text(" two\nlines\x00 ")
    'two lines'
    """
    seen = "".join(one if one.isprintable() else " " for one in text)
    return " ".join(seen.split())[:MAX_NOTE_LENGTH]


def spoken(workspace: Workspace, rows: IntArray) -> str:
    """Return how samples are called in a sentence."""
    if len(rows) == 1:
        return names_of(workspace.samples.dataset, rows)[0]
    return f"{len(rows):,} images"


MarkTool = Literal["csv", "label-studio", "cvat", "cleanlab"]
TOOLS: tuple[MarkTool, ...] = get_args(MarkTool)
TABLE = "marks.csv"
COLUMNS = ("file", "path", "sample_id", "label", "mark", "right_label", "text", "by", "time")
BETWEEN = "|"


def _rows(dataset: Dataset, book: MarkBook) -> Iterator[tuple[int, str, tuple[Mark, ...]]]:
    """Return row, id and marks of all marked samples that are there, in the order of the data."""
    for row, sample_id in enumerate(dataset.table.column("sample_id").to_pylist()):
        if marks := book.of(sample_id):
            yield row, sample_id, marks


def marks_table(dataset: Dataset, book: MarkBook, *, with_paths: bool) -> str:
    """Return all marks as CSV, one line a mark."""
    found = list(_rows(dataset, book))
    rows = np.array([row for row, _, _ in found], dtype=np.int64)
    places = dataset.table.column("location").take(pa.array(rows)).to_pylist()
    names = names_of(dataset, rows)
    columns = COLUMNS if with_paths else [one for one in COLUMNS if one != "path"]
    lines = []
    for (row, sample_id, marks), place, name in zip(found, places, names, strict=True):
        label = BETWEEN.join(names_at(dataset, row) or ())
        path = [shown_location(place) if place else ""] if with_paths else []
        for one in marks:
            right = BETWEEN.join(one.labels)
            told = [one.kind.value, right, one.text, one.by, one.time]
            lines.append([name, *path, sample_id, label, *told])
    return csv_text(columns, lines)


def write_marks(project: Project, book: MarkBook, tool: MarkTool, folder: Path) -> Written:
    """Write marked samples for another tool, or as a table.

    Raises:
        DataError: if nothing is marked that the tool is for.
    """
    dataset = project.store.dataset()
    if tool == "csv":
        return _write_table(dataset, book, folder)
    listed = tuple(
        ListedSample(
            row=row,
            why="; ".join(f"{one.words} ({one.by})" for one in marks),
            suggested=tuple(
                name for one in marks if one.kind is MarkKind.LABEL for name in one.labels
            ),
        )
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


ReadMarks = tuple[list[tuple[int, NewMark]], int, int]
"""What a file says: rows with what is said of each that differs from their labels; lines that give a sample the label that it has;
and lines about samples or classes that are not there."""


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
    marks: list[tuple[int, NewMark]] = []
    n_same = n_unknown = 0
    for line in lines:
        row = known.get((line.get("sample_id") or line.get("id") or "").strip())
        read = _mark_of(line)
        if row is None or read is None or not set(read.labels) <= set(dataset.class_names):
            n_unknown += 1
        elif read.kind is MarkKind.LABEL and set(read.labels) == set(names_at(dataset, row) or ()):
            n_same += 1
        else:
            marks.append((row, read))
    return marks, n_same, n_unknown


def _mark_of(line: dict[str, str]) -> NewMark | None:
    """Return what a line says; of a table without a column for marks, the label is meant as the right one."""
    given = (line.get("mark") or "").strip().lower()
    right = line.get("right_label") if "right_label" in line else line.get("label")
    labels = [one for one in plain_cell(right or "").split(BETWEEN) if one]
    text = clean_text(plain_cell(line.get("text") or ""))
    if given in ("", MarkKind.LABEL.value):
        return NewMark(kind=MarkKind.LABEL, labels=labels) if labels or given else None
    if given not in [kind.value for kind in MarkKind]:
        return None
    kind = MarkKind(given)
    if kind in ALONE:
        return NewMark(kind=kind)
    return NewMark(kind=kind, text=text) if text else None


MAX_LISTED = 500


class MarkedLabel(View):
    """A label that somebody says is wrong, or a sample that is of no use.

    Args:
        sample_id: which sample.
        file: its file name.
        label: what it has now; empty if it has none.
        right: what it shall have; null if it is of no use.
        by: who said it.
        time: when.
        is_applied: whether it counts.
    """

    sample_id: str
    file: str
    label: list[str]
    right: list[str] | None
    by: str
    time: str
    is_applied: bool


class MarksView(View):
    """What people said of samples, and what of it counts.

    Args:
        counts: how many samples have each kind of mark.
        tags: all tags, most frequent first.
        labels: wrong labels with the right one, and samples of no use; the first few hundred, those that wait first.
        n_waiting: how many of all wait to be applied.
        n_applied: labels that were corrected, and count.
        n_without_right: wrong labels of which nobody knows the right one; they cannot be applied.
        n_of_proof: those that cannot be applied because runs are cross-fitted, and the samples prove slices.
        n_gone: marked samples that are not among those that people may look at.
    """

    counts: dict[str, int]
    tags: list[str]
    labels: list[MarkedLabel]
    n_waiting: int
    n_applied: int
    n_without_right: int
    n_of_proof: int
    n_gone: int


def marks_view(workspace: Workspace) -> MarksView:
    """Return what people said of samples, and what of it counts."""
    book, (lines, left_out) = workspace.shared.marks(), _look(workspace)
    shown = sorted(lines, key=lambda one: (one.is_applied, one.file))
    return MarksView(
        counts=book.counts(),
        tags=book.tags()[:MAX_LISTED],
        labels=shown[:MAX_LISTED],
        n_waiting=sum(not one.is_applied for one in lines),
        n_applied=len(workspace.project.store.corrections.read().entries),
        n_without_right=left_out["without right"],
        n_of_proof=left_out["of proof"],
        n_gone=left_out["gone"],
    )


def _look(workspace: Workspace) -> tuple[list[MarkedLabel], Counter[str]]:
    """Return what can be applied, and how many labels cannot, by why."""
    lines, left_out, marked = [], Counter[str](), dict(_said(workspace))
    rows = _visible(workspace, marked)
    proving, corrected = _proving(workspace), workspace.project.store.corrections.read().by_sample()
    places = np.array(list(rows.values()), dtype=np.int64)
    names = dict(zip(rows, files_of(workspace, places), strict=True))
    for sample_id, mark in marked.items():
        if sample_id not in rows:
            left_out["gone"] += sample_id not in corrected
        elif mark.kind is MarkKind.LABEL and not mark.labels:
            left_out["without right"] += 1
        elif rows[sample_id] in proving:
            left_out["of proof"] += 1
        else:
            label = names_at(workspace.samples.dataset, rows[sample_id])
            lines.append(_line(sample_id, names[sample_id], label, mark))
    return lines, left_out


def _visible(workspace: Workspace, sample_ids: Iterable[str]) -> dict[str, int]:
    """Return the rows of samples, of those that people may look at."""
    seen = visible_samples(workspace).rows
    column = workspace.samples.dataset.table.column("sample_id").take(pa.array(seen))
    wanted = pa.array(list(sample_ids), pa.string())
    places = np.flatnonzero(np.asarray(pc.is_in(column, value_set=wanted).combine_chunks()))
    ids = column.take(pa.array(places)).to_pylist()
    return dict(zip(ids, seen[places].tolist(), strict=True))


def _line(sample_id: str, file: str, label: Names, mark: Mark) -> MarkedLabel:
    right = None if mark.kind is MarkKind.UNUSABLE else mark.labels
    return MarkedLabel(
        sample_id=sample_id,
        file=file,
        label=list(label or ()),
        right=right,
        by=mark.by,
        time=mark.time,
        is_applied=(label is None) == (right is None) and set(label or ()) == set(right or ()),
    )


def _said(workspace: Workspace) -> Iterable[tuple[str, Mark]]:
    for sample_id, marks in workspace.shared.marks().by_sample.items():
        for mark in marks:
            if mark.kind in ALONE:
                yield sample_id, mark


def _proving(workspace: Workspace) -> set[int]:
    """Return the rows whose labels prove something although people see them: all evaluation samples of cross-fitted runs."""
    settings = workspace.project.settings
    is_crossed = settings.verify.scheme == "cross-fit"
    return set(used_rows(workspace.samples, settings).tolist()) if is_crossed else set()


class AppliedLabels(View):
    """Labels that were corrected.

    Args:
        time: when.
        samples: what was known of each sample before: an earlier correction, or null.
        n_labels: labels that were replaced.
        n_unusable: samples that were taken out.
    """

    time: str
    samples: dict[str, dict[str, JsonValue] | None]
    n_labels: int
    n_unusable: int


def apply_marks(workspace: Workspace, *, by: str) -> AppliedLabels:
    """Let marked labels count: they are written beside weakspot.toml, and the samples are another data set from now on.

    Raises:
        DataError: if there is nothing to apply.
    """
    with workspace.editing() as project:
        waiting = [one for one in _look(workspace)[0] if not one.is_applied]
        if not waiting:
            raise DataError(
                "There is nothing to apply.",
                fix="Mark labels as wrong, with the right one, or images as unusable.",
            )
        file = project.store.corrections
        before, time = file.read(), datetime.now(UTC).isoformat()
        known = before.by_sample()
        made = [
            Correction(
                sample_id=one.sample_id,
                file=one.file,
                before=known[one.sample_id].before if one.sample_id in known else tuple(one.label),
                label=None if one.right is None else tuple(one.right),
                by=by,
                time=time,
            )
            for one in waiting
        ]
        file.write([*before.entries, *made])
    replaced = {one.sample_id: known.get(one.sample_id) for one in made}
    return AppliedLabels(
        time=time,
        samples={name: None if one is None else asdict(one) for name, one in replaced.items()},
        n_labels=sum(one.label is not None for one in made),
        n_unusable=sum(one.label is None for one in made),
    )


def take_out(workspace: Workspace, applied: AppliedLabels) -> None:
    """Undo an application: labels are again what they were before it.

    Raises:
        StoreError: if one of the labels was corrected again since.
    """
    with workspace.editing() as project:
        file = project.store.corrections
        known = file.read().by_sample()
        is_other = [
            one for one in applied.samples if one not in known or known[one].time != applied.time
        ]
        if is_other:
            raise StoreError(
                "Some of these labels were corrected again since.",
                given=len(is_other),
                fix="Undo that first.",
            )
        for sample_id, earlier in applied.samples.items():
            del known[sample_id]
            if earlier is not None:
                known[sample_id] = TypeAdapter(Correction).validate_python(earlier)
        file.write(known.values())
