"""Activity: work under way, who did what and when, with undo; and a stream that tells open pages that something changed.

Undo is refused where the same thing was changed again since.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import StreamingResponse
from pydantic import Field, JsonValue

from weakspot.core.errors import DataError
from weakspot.web.jobs import JobView
from weakspot.web.problems import RefusedError
from weakspot.web.server_parts import (
    MAX_NUMBER,
    Changing,
    ChangingNow,
    Owner,
    Parts,
    ProjectReader,
    ServerParts,
    SignIn,
)
from weakspot.web.services.attributes import EditRequest, EditView, edit_attributes, edits_of
from weakspot.web.services.compare import other_models
from weakspot.web.services.marks import AppliedLabels, take_out
from weakspot.web.services.repair import current_repair, go_back_to
from weakspot.web.services.slice_editing import give_names_back, swap_slices
from weakspot.web.services.view import View
from weakspot.web.services.work import check_arguments
from weakspot.web.state.changes import (
    MARKS,
    UNDO,
    Change,
    add_change,
    change_of,
    changes_of,
    mark_undone,
    newest_change,
    undo_marks,
    version_of,
)
from weakspot.web.state.store import Role
from weakspot.web.state.studies import open_or_close

Undo = Callable[[Changing, Mapping[str, Any]], None]


def _names(changing: Changing, data: Mapping[str, Any]) -> None:
    workspace, by = changing.parts.workspace, changing.person.name
    give_names_back(workspace, data["run"], data["slice"], data["names"], by=by)


def _slices(changing: Changing, data: Mapping[str, Any]) -> None:
    workspace, by = changing.parts.workspace, changing.person.name
    swap_slices(workspace, data["run"], back=data["back"], away=data["away"], by=by)


def _repair(changing: Changing, data: Mapping[str, Any]) -> None:
    workspace = changing.parts.workspace
    if current_repair(workspace, data["run"]) != data["after"]:
        raise RefusedError(
            409, "Another repair was made or chosen since.", fix="Choose one on the page Repair."
        )
    go_back_to(workspace, data["before"], data["run"])


def _labels(changing: Changing, data: Mapping[str, Any]) -> None:
    take_out(changing.parts.workspace, AppliedLabels.model_validate(data))


def _study(changing: Changing, data: Mapping[str, Any]) -> None:
    state, person = changing.parts.state, changing.person
    open_or_close(state, person, data["study"], is_open=data["was_open"])


UNDOS: dict[str, Undo] = {
    "slice words": _names,
    "slices": _slices,
    "repair": _repair,
    "labels": _labels,
    "study": _study,
}


def can_undo(kind: str) -> bool:
    """Return whether a kind of change can be undone."""
    return kind == MARKS or kind in UNDOS


def undo(changing: Changing, change_id: int) -> None:
    """Undo a change.

    Raises:
        RefusedError: 404 if there is none, 409 if it was undone or the same thing was changed since, with what was done.
    """
    change = change_of(changing.parts.state, change_id)
    if not can_undo(change.kind):
        raise DataError("This cannot be undone.", given=change.sentence)
    made = changing.change(UNDO, f"{UNDO} {change_id}", f"Undid: {change.sentence}")
    if change.kind == MARKS:
        made = made.model_copy(update={"subject": MARKS})
        changing.told(undo_marks(changing.parts.state, change_id, change=made))
        return
    with changing.parts.workspace.editing():
        # Another tab may have undone it while this one waited.
        change = change_of(changing.parts.state, change_id)
        _refuse_newer(changing, change)
        UNDOS[change.kind](changing, change.data)
        with changing.parts.state.writing() as rows:
            number = add_change(rows, made.model_copy(update={"subject": change.subject}))
            mark_undone(rows, change_id, number)
    changing.told(number)


def _refuse_newer(changing: Changing, change: Change) -> None:
    newer = newest_change(
        [change.subject, *change.data.get("subjects", [])],
        after=change.change_id,
        state=changing.parts.state,
        is_lasting=True,
    )
    if newer is not None:
        raise RefusedError(
            409,
            f"{newer.by} changed the same thing since: {newer.sentence}",
            fix="Undo that first.",
        )


router = APIRouter(prefix="/api", tags=["activity"])
CHANGE, EDIT, JOB = "change", "edit", "job"
MAX_AT_ONCE = 500
MAX_STREAMS = 200
STREAM: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}
}


class Done(View):
    """Something that somebody did.

    Args:
        item: by what it is undone.
        kind: of what sort it is.
        sentence: in words.
        by: who did it.
        time: when.
        is_undone: whether it was undone.
        can_undo: whether it can be.
        link: the page where it is seen; empty if there is none.
    """

    item: str
    kind: str
    sentence: str
    by: str
    time: str
    is_undone: bool
    can_undo: bool
    link: str


class Activity(View):
    """What people did, newest first.

    Args:
        version: number of the last change.
        done: what was done.
        older: from where on older changes are asked for; null if there are none.
    """

    version: int
    done: list[Done]
    older: int | None


class UndoRequest(View):
    """What is undone."""

    item: Annotated[str, Field(pattern=r"^(change|edit) [0-9]{1,9}$")]


@router.get("/activity")
def activity(
    _person: ProjectReader,
    parts: Parts,
    before: Annotated[int | None, Query(ge=0, le=MAX_NUMBER)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_AT_ONCE)] = 100,
) -> Activity:
    """Return what people did."""
    changes = changes_of(parts.state, before=before, limit=limit)
    older = changes[-1].change_id if len(changes) == limit else None
    done = [_of_change(one) for one in changes]
    others = [*map(_of_edit, edits_of(parts.workspace).edits), *map(_of_job, parts.jobs.newest())]
    oldest = done[-1].time if older is not None else ""
    told = _time_of(parts, before)
    done += [one for one in others if oldest <= one.time and (not told or one.time < told)]
    done.sort(key=lambda one: one.time, reverse=True)
    return Activity(version=version_of(parts.state), done=done, older=older)


def _time_of(parts: ServerParts, number: int | None) -> str:
    """Return when a change was made, down to which the page before told everything; empty if there is none."""
    found = [] if number is None else changes_of(parts.state, before=number + 1, limit=1)
    return found[0].created if found and found[0].change_id == number else ""


def _of_change(change: Change) -> Done:
    is_undone = change.undone_by is not None
    subject, _, name = change.subject.partition(" ")
    links = {
        "marks": "/marks",
        "labels": "/marks",
        "slice": f"/slices/{name}",
        "repair": "/repair",
        "study": f"/studies/{name}",
    }
    return Done(
        item=f"{CHANGE} {change.change_id}",
        kind=change.kind,
        sentence=change.sentence,
        by=change.by,
        time=change.created,
        is_undone=is_undone,
        can_undo=not is_undone and can_undo(change.kind),
        link=links.get(subject, ""),
    )


def _of_edit(edit: EditView) -> Done:
    return Done(
        item=f"{EDIT} {edit.number}",
        kind="attributes",
        sentence=edit.sentence,
        by=edit.by,
        time=edit.time,
        is_undone=edit.state == "undone",
        can_undo=edit.state == "holds",
        link="/attributes",
    )


WORK = {
    "run": ("Looked for failures", "/"),
    "repair": ("Repaired", "/repair"),
    "report": ("Wrote the report", "/"),
    "attributes": ("Assigned attributes", "/attributes"),
    "map": ("Laid out the map", "/map"),
    "compare": ("Compared with another classifier", "/compare"),
    "counterfactual": ("Generated images of captions", "/search"),
    "search": ("Searched for failing captions", "/search"),
    "study-repairs": ("Repaired by the phrases of a study", "/studies"),
    "preflight": ("Checked data and classifier", "/"),
}


def _of_job(job: JobView) -> Done:
    sentence, link = WORK.get(job.kind, (f"Started work: {job.kind}", "/"))
    return Done(
        item=f"{JOB} {job.job_id}",
        kind="work",
        sentence=f"{sentence} ({job.state.value})",
        by=job.started_by,
        time=job.created,
        is_undone=False,
        can_undo=False,
        link=link,
    )


@router.post("/activity/undo")
def undo_one(asked: UndoRequest, person: Owner, parts: Parts, changing: ChangingNow) -> Activity:
    """Undo something; refused, with what was done, where the same thing was changed since."""
    kind, _, number = asked.item.partition(" ")
    if kind == EDIT:
        edits = edits_of(parts.workspace)
        request = EditRequest(
            version=edits.version, kind="undo", target=min(int(number), edits.version)
        )
        edit_attributes(parts.workspace, request, by=person.name)
        parts.live.nudge()
    else:
        undo(changing, int(number))
    return activity(person, parts)


@router.get("/live", response_class=StreamingResponse, responses=STREAM, include_in_schema=False)
async def live(
    person: ProjectReader, parts: Parts, login: SignIn, request: Request
) -> StreamingResponse:
    """Tell a page, as long as its session lasts, whenever something changed; what, it asks for itself."""
    if parts.live.n_listeners >= MAX_STREAMS:
        raise RefusedError(429, "Too many pages listen already.", retry_after=30)
    token = request.state.session_token

    async def is_welcome() -> bool:
        if not token:
            return True
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(None, partial(login.sessions.person_with, token))
        return (
            found is not None
            and found.role is not Role.ANNOTATOR
            and found.person_id == person.person_id
        )

    headers = {"X-Accel-Buffering": "no"}
    return StreamingResponse(
        parts.live.stream(is_welcome), media_type="text/event-stream", headers=headers
    )


work = APIRouter(prefix="/api", tags=["jobs"])
JobId = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


class StartWork(View):
    """Work to be started.

    Args:
        kind: what is to be done.
        arguments: what that kind takes; unknown ones are refused.
    """

    kind: str = Field(max_length=40)
    arguments: dict[str, JsonValue] = Field(default_factory=dict, max_length=40)


@work.post("/jobs")
def start(asked: StartWork, person: Owner, parts: Parts) -> JobView:
    """Start work; it waits if other work of the project is under way."""
    if asked.kind == "compare":
        # Work gets the name of the other project, and reads where it is.
        other_models(parts.workspace)
    return parts.jobs.start(
        asked.kind, check_arguments(asked.kind, asked.arguments), by=person.name
    )


@work.get("/jobs")
def jobs(_person: ProjectReader, parts: Parts) -> dict[str, list[JobView]]:
    """Return the last works, newest first."""
    return {"jobs": parts.jobs.newest()}


@work.get("/jobs/{job_id}")
def job(job_id: JobId, _person: ProjectReader, parts: Parts) -> JobView:
    """Return one work."""
    return parts.jobs.find(job_id)


@work.post("/jobs/{job_id}/cancel")
def cancel(job_id: JobId, _person: Owner, parts: Parts) -> JobView:
    """Stop a work; what it has finished is kept."""
    return parts.jobs.cancel(job_id)


@work.post("/jobs/{job_id}/resume")
def resume(job_id: JobId, _person: Owner, parts: Parts) -> JobView:
    """Go on with a work that was stopped or failed."""
    return parts.jobs.resume(job_id)
