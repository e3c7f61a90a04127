"""Slices: the table, one slice, and what people do with it."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from fastapi import Path as InPath

from weakspot.core.run import RunRecord
from weakspot.core.slices import FailureSlice
from weakspot.web.problems import RefusedError
from weakspot.web.server_parts import (
    Changing,
    ChangingNow,
    Owner,
    Parts,
    ProjectReader,
    slice_subject,
)
from weakspot.web.services import slice_editing
from weakspot.web.services.compare import (
    OtherModels,
    SliceComparison,
    SlicePair,
    TwoModels,
    other_models,
    slice_comparison,
    slice_pair,
    two_models,
)
from weakspot.web.services.slice_editing import (
    ChangedSlice,
    ColumnValues,
    Dismissal,
    Merging,
    Naming,
    Narrowing,
    NewThreshold,
    PickedRows,
    SliceFromRows,
    names_of_slice,
    slice_from_rows,
)
from weakspot.web.services.slices import (
    Shown,
    SlicePageView,
    SliceSamplePage,
    SliceScores,
    SliceTable,
    run_ids,
    run_of,
    sample_page,
    slice_page,
    slice_scores,
    slice_table,
)

router = APIRouter(prefix="/api", tags=["slices"])

FARTHEST = 2**31
MAX_AT_ONCE = 500
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


@router.get("/slices")
def table(_person: ProjectReader, parts: Parts, run: RunId = None) -> SliceTable:
    """Return all slices of a run, in the order of its report."""
    _refuse_unknown_run(parts, run)
    return slice_table(parts.workspace, run)


@router.post("/slices/merge")
def merge(
    person: Owner, parts: Parts, changing: ChangingNow, asked: Merging, run: RunId = None
) -> ChangedSlice:
    """Make one slice of two of the same class, and prove it; it takes their place."""
    record, _ = _find(parts, asked.first, run)
    _find(parts, asked.second, run)
    with changing.alone(slice_subject(asked.first), slice_subject(asked.second)):
        made = slice_editing.merge(parts.workspace, record.run_id, asked, by=person.name)
        _note_slices(changing, made, "Merged two slices", back=[asked.first, asked.second])
    return made


@router.post("/slices/from-rows")
def from_rows(
    person: Owner, parts: Parts, changing: ChangingNow, asked: PickedRows
) -> SliceFromRows:
    """Make a slice of samples that were picked out, and prove it with all others of the newest run."""
    with changing.alone():
        made = slice_from_rows(parts.workspace, asked, by=person.name)
        _note_slices(changing, made, "Made a slice of picked samples")
    return made


@router.get("/slices/{slice_id}")
def one(_person: ProjectReader, parts: Parts, found: Found) -> SlicePageView:
    """Return everything about a slice."""
    return slice_page(parts.workspace, *found)


@router.get("/slices/{slice_id}/beside/{other_id}")
def beside(
    _person: ProjectReader,
    parts: Parts,
    found: Found,
    other_id: Annotated[str, InPath(pattern=r"^[0-9a-f]{12}$", description="The other slice.")],
    run: RunId = None,
) -> SlicePair:
    """Return two slices of a run beside each other."""
    record, first = found
    return slice_pair(parts.workspace, record, first, _find(parts, other_id, run)[1])


@router.get("/slices/{slice_id}/members")
def members(
    _person: ProjectReader,
    parts: Parts,
    found: Found,
    kind: Shown = Shown.MEMBERS,
    offset: Annotated[int, Query(ge=0, le=FARTHEST)] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_AT_ONCE)] = 100,
) -> SliceSamplePage:
    """Return samples of a slice's class on the half that people may look at."""
    return sample_page(parts.workspace, *found, kind, offset=offset, limit=limit)


@router.get("/slices/{slice_id}/scores")
def scores(_person: ProjectReader, parts: Parts, found: Found) -> SliceScores:
    """Return how deep all samples of the class lie in a slice, so that its threshold can be tried out on the page."""
    return slice_scores(parts.workspace, *found)


@router.get("/slices/{slice_id}/columns")
def columns(_person: ProjectReader, parts: Parts, found: Found) -> dict[str, list[ColumnValues]]:
    """Return the columns by whose values a slice can be narrowed."""
    return {"columns": slice_editing.columns_of(parts.workspace, *found)}


@router.post("/slices/{slice_id}/words")
def rename(
    person: Owner, parts: Parts, changing: ChangingNow, found: Found, asked: Naming
) -> ChangedSlice:
    """Give a slice a person's words; who belongs to it stays."""
    run_id, slice_id = found[0].run_id, found[1].slice_id
    with changing.alone(slice_subject(slice_id)):
        names = names_of_slice(run_of(parts.workspace, run_id), slice_id)
        made = slice_editing.rename(
            parts.workspace, run_id, slice_id, words=asked.words, by=person.name
        )
        sentence = f"Renamed a slice of {found[1].class_name}: “{asked.words}”"
        subject = slice_subject(slice_id)
        changing.note("slice words", subject, sentence, run=run_id, slice=slice_id, names=names)
    return made


@router.post("/slices/{slice_id}/threshold")
def move_threshold(
    changing: ChangingNow, _person: Owner, found: Found, asked: NewThreshold
) -> ChangedSlice:
    """Let membership begin elsewhere: a new slice, proven anew, that takes the place of the old one."""
    change = partial(slice_editing.move_threshold, threshold=asked.threshold)
    return _changed(changing, found, change, "Moved the threshold of a slice")


@router.post("/slices/{slice_id}/values")
def narrow(changing: ChangingNow, _person: Owner, found: Found, asked: Narrowing) -> ChangedSlice:
    """Keep only members with some values of a column, or all but those: a new slice, proven anew."""
    change = partial(slice_editing.narrow, asked=asked)
    return _changed(changing, found, change, "Narrowed a slice")


@router.post("/slices/{slice_id}/dismiss")
def dismiss(changing: ChangingNow, _person: Owner, found: Found, asked: Dismissal) -> ChangedSlice:
    """Set a slice aside for a reason."""
    change = partial(slice_editing.dismiss, reason=asked.reason)
    return _changed(changing, found, change, f"Dismissed a slice ({asked.reason})", away=[])


@router.post("/slices/{slice_id}/restore")
def restore(changing: ChangingNow, _person: Owner, found: Found) -> ChangedSlice:
    """Take a dismissed slice back."""
    return _changed(changing, found, slice_editing.restore, "Restored a slice", back=[])


def _changed(
    changing: Changing,
    found: tuple[RunRecord, FailureSlice],
    change: Callable[..., ChangedSlice],
    what: str,
    *,
    back: Sequence[str] | None = None,
    away: Sequence[str] | None = None,
) -> ChangedSlice:
    """Change a slice with nobody else in between, and write it down; undone, the slice is taken back by default."""
    run_id, slice_id = found[0].run_id, found[1].slice_id
    with changing.alone(slice_subject(slice_id)):
        made = change(changing.parts.workspace, run_id, slice_id, by=changing.person.name)
        taken = [slice_id] if back is None else back
        _note_slices(changing, made, what, back=taken, away=away)
    return made


def _note_slices(
    changing: Changing,
    made: ChangedSlice,
    what: str,
    *,
    back: Sequence[str] = (),
    away: Sequence[str] | None = None,
) -> None:
    """Write down a change of slices.

    Args:
        changing: the request.
        made: what became of it.
        what: the change in words.
        back: slices that are taken back when it is undone.
        away: slices that are set aside when it is undone; the one that was made by default.
    """
    line = made.line
    gone = [line.slice_id] if away is None else list(away)
    changing.note(
        "slices",
        slice_subject(back[0] if back else line.slice_id),
        f"{what}: {line.title}",
        run=made.run_id,
        back=list(back),
        away=gone,
        subjects=[slice_subject(one) for one in (*back[1:], *gone)],
    )


@router.get("/comparisons")
def comparisons(_person: ProjectReader, parts: Parts) -> OtherModels:
    """Return the projects that this one can be compared with."""
    return other_models(parts.workspace)


@router.get("/comparisons/models")
def models(
    _person: ProjectReader,
    parts: Parts,
    other: Annotated[str, Query(min_length=1, max_length=300)],
) -> TwoModels:
    """Return this project's classifier beside another's: failures of both, and of one alone."""
    return two_models(parts.workspace, other)


@router.get("/slices/{slice_id}/comparison")
def comparison(
    _person: ProjectReader,
    parts: Parts,
    slice_id: SliceId,
    other: Annotated[str, Query(min_length=1, max_length=300)],
) -> SliceComparison:
    """Return a slice on another project's classifier."""
    return slice_comparison(parts.workspace, slice_id, other)
