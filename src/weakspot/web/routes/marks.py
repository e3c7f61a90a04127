"""Marks: what people say of samples, how it leaves and comes back, and how it begins to count."""

import tempfile
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response, UploadFile
from fastapi import Path as InPath

from weakspot.web.problems import RefusedError
from weakspot.web.server_parts import ChangingNow, Owner, Parts, ProjectReader, attachment
from weakspot.web.services.images import ImageQuery, choose_images, find_row, is_visible
from weakspot.web.services.marks import (
    MarkRemoval,
    MarkRequest,
    MarksView,
    MarkTool,
    MeantSamples,
    apply_marks,
    check_mark,
    marks_table,
    marks_view,
    meant_rows,
    spoken,
    zip_marks,
)
from weakspot.web.services.view import INT32, View, pack
from weakspot.web.services.workspace import Mark
from weakspot.web.state.changes import (
    MARKS,
    ReadBack,
    keep_selection,
    mark_samples,
    read_back,
    take_back,
)
from weakspot.web.state.store import Role

router = APIRouter(prefix="/api", tags=["marks"])
LABELS = "labels"
FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            "text/csv": {"schema": {"type": "string"}},
            "application/zip": {"schema": {"type": "string", "format": "binary"}},
        },
        "description": "A table, or an archive of the files of the other tool.",
    }
}


class Marked(View):
    """What was marked.

    Args:
        n_samples: how many samples.
        sentence: the change in words.
    """

    n_samples: int
    sentence: str


class PickedOut(View):
    """Samples that were picked out, under a name that an address can hold."""

    selection_id: str
    n_samples: int


class ChosenRows(View):
    """Rows that a query chooses, as little-endian int32 in base64, at most as many as a map shows.

    Args:
        tables: what row numbers belong to.
        total: how many are chosen.
        rows: the rows, in order.
    """

    tables: str
    total: int
    rows: str


MAX_ROWS = 200_000


@router.get("/marks")
def marks(_person: ProjectReader, parts: Parts) -> MarksView:
    """Return what people said of samples, and what of it counts."""
    return marks_view(parts.workspace)


@router.get("/sample-ids/{sample_id}/marks")
def marks_of_sample(
    sample_id: Annotated[str, InPath(max_length=200)], _person: ProjectReader, parts: Parts
) -> dict[str, list[Mark]]:
    """Return what people said of a sample, oldest first."""
    row = find_row(parts.workspace, sample_id)
    if row is None or not is_visible(parts.workspace, row):
        raise RefusedError(404, "There is no such sample.")
    return {"marks": list(parts.workspace.shared.marks().of(sample_id))}


@router.post("/marks")
def add_mark(asked: MarkRequest, _person: Owner, parts: Parts, changing: ChangingNow) -> Marked:
    """Say something of samples: a wrong label, no use, a note, a tag. It counts nowhere until it is applied."""
    mark = check_mark(parts.workspace, asked)
    rows = meant_rows(parts.workspace, asked)
    sentence = f"Marked {spoken(parts.workspace, rows)}: {mark.words}"
    number = mark_samples(
        parts.state,
        parts.workspace.samples.dataset.sample_ids(rows),
        mark,
        change=changing.change(MARKS, MARKS, sentence),
        seen=changing.seen,
    )
    changing.told(number)
    return Marked(n_samples=len(rows), sentence=sentence)


@router.post("/marks/removal")
def remove_marks(asked: MarkRemoval, _person: Owner, parts: Parts, changing: ChangingNow) -> Marked:
    """Take marks of samples back."""
    rows = meant_rows(parts.workspace, asked)
    what = "all marks" if asked.kind is None else f"the mark {asked.text or asked.kind.value}"
    sentence = f"Took {what} back from {spoken(parts.workspace, rows)}"
    ids = parts.workspace.samples.dataset.sample_ids(rows)
    number, _ = take_back(
        parts.state,
        ids,
        kind=asked.kind,
        text=asked.text,
        change=changing.change(MARKS, MARKS, sentence),
    )
    changing.told(number)
    return Marked(n_samples=len(rows), sentence=sentence)


@router.post("/marks/apply")
def apply(_person: Owner, parts: Parts, changing: ChangingNow) -> MarksView:
    """Let marked labels count from now on; this is another data set, and every later run says so."""
    with changing.alone(LABELS):
        applied = apply_marks(parts.workspace, by=changing.person.name)
        sentence = f"Applied {applied.n_labels} corrected labels, took out {applied.n_unusable} unusable images"
        changing.note(LABELS, LABELS, sentence, **applied.model_dump(mode="json"))
    return marks_view(parts.workspace)


@router.get("/marks/files/{tool}", response_class=Response, responses=FILE)
def download_marks(tool: MarkTool, person: ProjectReader, parts: Parts) -> Response:
    """Return all marks as a table, or for another tool, with places of files; the latter for owners only."""
    project, book = parts.workspace.project, parts.workspace.shared.marks()
    is_owner = person.role is Role.OWNER
    if tool == "csv":
        text = marks_table(parts.workspace.samples.dataset, book, with_paths=is_owner)
        return attachment(text.encode(), "marks.csv", "text/csv; charset=utf-8")
    if not is_owner:
        raise RefusedError(403, "Only an owner may do this.", fix="Download the CSV.")
    return attachment(zip_marks(project, book, tool), f"marks-{tool}.zip", "application/zip")


@router.post("/uploads/marks")
def upload_marks(
    file: UploadFile,
    _person: Owner,
    parts: Parts,
    changing: ChangingNow,
    tool: Annotated[MarkTool, Query(description="who wrote the file")] = "csv",
) -> ReadBack:
    """Read marks, or labels that people gave in another tool: what differs from the present label becomes a mark."""
    with tempfile.TemporaryDirectory(prefix="weakspot-marks-") as folder:
        source = Path(folder) / f"marks{_ending(file.filename)}"
        source.write_bytes(file.file.read())
        found, number = read_back(
            parts.workspace, parts.state, tool, source, by=changing.person.name
        )
    if number is not None:
        changing.told(number)
    return found


def _ending(name: str | None) -> str:
    suffix = Path(name or "").suffix.lower()
    return suffix if suffix in (".csv", ".tsv", ".json", ".xml", ".zip") else ".csv"


@router.post("/selections")
def pick_out(asked: MeantSamples, _person: ProjectReader, parts: Parts) -> PickedOut:
    """Keep samples under a name that an address can hold, so that others see the same; it changes nothing of them."""
    rows = meant_rows(parts.workspace, asked)
    ids = parts.workspace.samples.dataset.sample_ids(rows)
    return PickedOut(selection_id=keep_selection(parts.state, ids), n_samples=len(ids))


@router.get("/image-rows")
def rows_of_images(
    asked: Annotated[ImageQuery, Query()], _person: ProjectReader, parts: Parts
) -> ChosenRows:
    """Return the rows of chosen images, for the map."""
    rows = choose_images(parts.workspace, asked).rows
    return ChosenRows(
        tables=parts.workspace.tables_key, total=len(rows), rows=pack(rows[:MAX_ROWS], INT32)
    )
