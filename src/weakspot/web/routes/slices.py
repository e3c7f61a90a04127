"""Slices: the table, one slice, and what people do with it."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi import Path as InPath

from weakspot.app.browsing import slice_editing
from weakspot.app.browsing.comparison_view import OtherModels, SliceComparison, other_models, slice_comparison
from weakspot.app.browsing.slice_editing import ChangedSlice, SliceColumns
from weakspot.app.browsing.slice_from_rows import SliceFromRows, slice_from_rows
from weakspot.app.browsing.slice_page import SlicePageView, slice_page
from weakspot.app.browsing.slice_records import run_ids, run_of
from weakspot.app.browsing.slice_requests import Dismissal, Merging, Narrowing, NewThreshold, PickedRows, Renaming
from weakspot.app.browsing.slice_samples import Shown, SliceSamplePage, SliceScores, sample_page, slice_scores
from weakspot.app.browsing.slice_table import SliceTable, slice_table
from weakspot.core.run import RunRecord
from weakspot.core.slices import FailureSlice
from weakspot.web.problems import RefusedError
from weakspot.web.server_parts import Owner, Parts, ProjectReader

router = APIRouter(prefix="/api", tags=["slices"])

FARTHEST = 2**31
MOST_AT_ONCE = 500
SliceId = Annotated[str, InPath(pattern=r"^[0-9a-f]{12}$", description="Which slice.")]
RunId = Annotated[str | None, Query(max_length=100, description="Which run; the newest by default.")]


@router.get("/slices")
def table(_person: ProjectReader, parts: Parts, run: RunId = None) -> SliceTable:
    """Return all slices of a run, in the order of its report."""
    _refuse_unknown_run(parts, run)
    return slice_table(parts.workspace, run)


@router.post("/slices/merge")
def merge(person: Owner, parts: Parts, asked: Merging, run: RunId = None) -> ChangedSlice:
    """Make one slice of two of the same class, and prove it; it takes their place."""
    record, _ = _found(parts, asked.first, run)
    _found(parts, asked.second, run)
    return slice_editing.merge(parts.workspace, record.run_id, asked, by=person.name)


@router.post("/slices/from-rows")
def from_rows(person: Owner, parts: Parts, asked: PickedRows) -> SliceFromRows:
    """Make a slice of samples that were picked out, and prove it with all others of the newest run."""
    return slice_from_rows(parts.workspace, asked, by=person.name)


@router.get("/slices/{slice_id}")
def one(_person: ProjectReader, parts: Parts, slice_id: SliceId, run: RunId = None) -> SlicePageView:
    """Return everything about a slice."""
    record, found = _found(parts, slice_id, run)
    return slice_page(parts.workspace, record, found)


@router.get("/slices/{slice_id}/members")
def members(
    _person: ProjectReader,
    parts: Parts,
    slice_id: SliceId,
    run: RunId = None,
    kind: Shown = Shown.MEMBERS,
    offset: Annotated[int, Query(ge=0, le=FARTHEST)] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_AT_ONCE)] = 100,
) -> SliceSamplePage:
    """Return samples of a slice's class on the half that people may look at."""
    record, found = _found(parts, slice_id, run)
    return sample_page(parts.workspace, record, found, kind, offset=offset, limit=limit)


@router.get("/slices/{slice_id}/scores")
def scores(_person: ProjectReader, parts: Parts, slice_id: SliceId, run: RunId = None) -> SliceScores:
    """Return how deep all samples of the class lie in a slice, so that its threshold can be tried out on the page."""
    record, found = _found(parts, slice_id, run)
    return slice_scores(parts.workspace, record, found)


@router.get("/slices/{slice_id}/columns")
def columns(_person: ProjectReader, parts: Parts, slice_id: SliceId, run: RunId = None) -> SliceColumns:
    """Return the columns by whose values a slice can be narrowed."""
    record, found = _found(parts, slice_id, run)
    return slice_editing.columns_of(parts.workspace, record, found)


@router.post("/slices/{slice_id}/words")
def rename(person: Owner, parts: Parts, slice_id: SliceId, asked: Renaming, run: RunId = None) -> ChangedSlice:
    """Give a slice a person's words; who belongs to it stays."""
    record, _ = _found(parts, slice_id, run)
    return slice_editing.rename(parts.workspace, record.run_id, slice_id, words=asked.words, by=person.name)


@router.post("/slices/{slice_id}/threshold")
def move_threshold(person: Owner, parts: Parts, slice_id: SliceId, asked: NewThreshold, run: RunId = None) -> ChangedSlice:
    """Let membership begin elsewhere: a new slice, proven anew, that takes the place of the old one."""
    record, _ = _found(parts, slice_id, run)
    return slice_editing.move_threshold(parts.workspace, record.run_id, slice_id, threshold=asked.threshold, by=person.name)


@router.post("/slices/{slice_id}/values")
def narrow(person: Owner, parts: Parts, slice_id: SliceId, asked: Narrowing, run: RunId = None) -> ChangedSlice:
    """Keep only members with some values of a column, or all but those: a new slice, proven anew."""
    record, _ = _found(parts, slice_id, run)
    return slice_editing.narrow(parts.workspace, record.run_id, slice_id, asked, by=person.name)


@router.post("/slices/{slice_id}/dismiss")
def dismiss(person: Owner, parts: Parts, slice_id: SliceId, asked: Dismissal, run: RunId = None) -> ChangedSlice:
    """Set a slice aside for a reason."""
    record, _ = _found(parts, slice_id, run)
    return slice_editing.dismiss(parts.workspace, record.run_id, slice_id, reason=asked.reason, by=person.name)


@router.post("/slices/{slice_id}/restore")
def restore(person: Owner, parts: Parts, slice_id: SliceId, run: RunId = None) -> ChangedSlice:
    """Take a dismissed slice back."""
    record, _ = _found(parts, slice_id, run)
    return slice_editing.restore(parts.workspace, record.run_id, slice_id, by=person.name)


@router.get("/comparisons")
def comparisons(_person: ProjectReader, parts: Parts) -> OtherModels:
    """Return the projects that this one can be compared with."""
    return other_models(parts.workspace)


@router.get("/slices/{slice_id}/comparison")
def comparison(
    _person: ProjectReader, parts: Parts, slice_id: SliceId, other: Annotated[str, Query(min_length=1, max_length=300)]
) -> SliceComparison:
    """Return a slice on another project's classifier."""
    return slice_comparison(parts.workspace, slice_id, other)


def _refuse_unknown_run(parts: Parts, run: str | None) -> None:
    if run is not None and run not in run_ids(parts.workspace):
        raise RefusedError(404, "There is no such run.", where="run", fix="Choose one of those on the overview.")


def _found(parts: Parts, slice_id: str, run: str | None) -> tuple[RunRecord, FailureSlice]:
    """Return a slice and its run.

    Raises:
        RefusedError: 404 if there is no such run or slice.
    """
    _refuse_unknown_run(parts, run)
    record = run_of(parts.workspace, run)
    found = next((one for one in record.slices if one.slice_id == slice_id), None)
    if found is None:
        raise RefusedError(404, "This run has no such slice.", where="slice_id", fix="Choose one of the table.")
    return record, found
