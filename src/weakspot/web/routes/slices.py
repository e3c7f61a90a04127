"""Slices: the table, one slice, and what people do with it."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi import Path as InPath

from weakspot.core.run import RunRecord
from weakspot.core.slices import FailureSlice
from weakspot.web.problems import RefusedError
from weakspot.web.server_parts import Owner, Parts, ProjectReader
from weakspot.web.services.slices import editing as slice_editing
from weakspot.web.services.slices.comparison import (
    OtherModels,
    SliceComparison,
    other_models,
    slice_comparison,
)
from weakspot.web.services.slices.editing import ChangedSlice, SliceColumns
from weakspot.web.services.slices.from_rows import SliceFromRows, slice_from_rows
from weakspot.web.services.slices.page import SlicePageView, slice_page
from weakspot.web.services.slices.requests import (
    Dismissal,
    Merging,
    Narrowing,
    NewThreshold,
    PickedRows,
    Renaming,
)
from weakspot.web.services.slices.samples import (
    Shown,
    SliceSamplePage,
    SliceScores,
    sample_page,
    slice_scores,
)
from weakspot.web.services.slices.table import SliceTable, run_ids, run_of, slice_table

router = APIRouter(prefix="/api", tags=["slices"])

FARTHEST = 2**31
MOST_AT_ONCE = 500
SliceId = Annotated[str, InPath(pattern=r"^[0-9a-f]{12}$", description="Which slice.")]
RunId = Annotated[
    str | None, Query(max_length=100, description="Which run; the newest by default.")
]


def _refuse_unknown_run(parts: Parts, run: str | None) -> None:
    if run is not None and run not in run_ids(parts.workspace):
        raise RefusedError(
            404, "There is no such run.", where="run", fix="Choose one of those on the overview."
        )


def _find(parts: Parts, slice_id: SliceId, run: RunId = None) -> tuple[RunRecord, FailureSlice]:
    """Return a slice and its run.

    Raises:
        RefusedError: 404 if there is no such run or slice.
    """
    _refuse_unknown_run(parts, run)
    record = run_of(parts.workspace, run)
    found = next((one for one in record.slices if one.slice_id == slice_id), None)
    if found is None:
        raise RefusedError(
            404, "This run has no such slice.", where="slice_id", fix="Choose one of the table."
        )
    return record, found


Found = Annotated[tuple[RunRecord, FailureSlice], Depends(_find)]


def _ids(found: tuple[RunRecord, FailureSlice]) -> tuple[str, str]:
    return found[0].run_id, found[1].slice_id


@router.get("/slices")
def table(_person: ProjectReader, parts: Parts, run: RunId = None) -> SliceTable:
    """Return all slices of a run, in the order of its report."""
    _refuse_unknown_run(parts, run)
    return slice_table(parts.workspace, run)


@router.post("/slices/merge")
def merge(person: Owner, parts: Parts, asked: Merging, run: RunId = None) -> ChangedSlice:
    """Make one slice of two of the same class, and prove it; it takes their place."""
    record, _ = _find(parts, asked.first, run)
    _find(parts, asked.second, run)
    return slice_editing.merge(parts.workspace, record.run_id, asked, by=person.name)


@router.post("/slices/from-rows")
def from_rows(person: Owner, parts: Parts, asked: PickedRows) -> SliceFromRows:
    """Make a slice of samples that were picked out, and prove it with all others of the newest run."""
    return slice_from_rows(parts.workspace, asked, by=person.name)


@router.get("/slices/{slice_id}")
def one(_person: ProjectReader, parts: Parts, found: Found) -> SlicePageView:
    """Return everything about a slice."""
    return slice_page(parts.workspace, *found)


@router.get("/slices/{slice_id}/members")
def members(
    _person: ProjectReader,
    parts: Parts,
    found: Found,
    kind: Shown = Shown.MEMBERS,
    offset: Annotated[int, Query(ge=0, le=FARTHEST)] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_AT_ONCE)] = 100,
) -> SliceSamplePage:
    """Return samples of a slice's class on the half that people may look at."""
    return sample_page(parts.workspace, *found, kind, offset=offset, limit=limit)


@router.get("/slices/{slice_id}/scores")
def scores(_person: ProjectReader, parts: Parts, found: Found) -> SliceScores:
    """Return how deep all samples of the class lie in a slice, so that its threshold can be tried out on the page."""
    return slice_scores(parts.workspace, *found)


@router.get("/slices/{slice_id}/columns")
def columns(_person: ProjectReader, parts: Parts, found: Found) -> SliceColumns:
    """Return the columns by whose values a slice can be narrowed."""
    return slice_editing.columns_of(parts.workspace, *found)


@router.post("/slices/{slice_id}/words")
def rename(person: Owner, parts: Parts, found: Found, asked: Renaming) -> ChangedSlice:
    """Give a slice a person's words; who belongs to it stays."""
    return slice_editing.rename(parts.workspace, *_ids(found), words=asked.words, by=person.name)


@router.post("/slices/{slice_id}/threshold")
def move_threshold(person: Owner, parts: Parts, found: Found, asked: NewThreshold) -> ChangedSlice:
    """Let membership begin elsewhere: a new slice, proven anew, that takes the place of the old one."""
    return slice_editing.move_threshold(
        parts.workspace, *_ids(found), threshold=asked.threshold, by=person.name
    )


@router.post("/slices/{slice_id}/values")
def narrow(person: Owner, parts: Parts, found: Found, asked: Narrowing) -> ChangedSlice:
    """Keep only members with some values of a column, or all but those: a new slice, proven anew."""
    return slice_editing.narrow(parts.workspace, *_ids(found), asked, by=person.name)


@router.post("/slices/{slice_id}/dismiss")
def dismiss(person: Owner, parts: Parts, found: Found, asked: Dismissal) -> ChangedSlice:
    """Set a slice aside for a reason."""
    return slice_editing.dismiss(parts.workspace, *_ids(found), reason=asked.reason, by=person.name)


@router.post("/slices/{slice_id}/restore")
def restore(person: Owner, parts: Parts, found: Found) -> ChangedSlice:
    """Take a dismissed slice back."""
    return slice_editing.restore(parts.workspace, *_ids(found), by=person.name)


@router.get("/comparisons")
def comparisons(_person: ProjectReader, parts: Parts) -> OtherModels:
    """Return the projects that this one can be compared with."""
    return other_models(parts.workspace)


@router.get("/slices/{slice_id}/comparison")
def comparison(
    _person: ProjectReader,
    parts: Parts,
    slice_id: SliceId,
    other: Annotated[str, Query(min_length=1, max_length=300)],
) -> SliceComparison:
    """Return a slice on another project's classifier."""
    return slice_comparison(parts.workspace, slice_id, other)
