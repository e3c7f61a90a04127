"""Work under way: start, watch, cancel, resume."""

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field, JsonValue

from weakspot.web.jobs import JobView
from weakspot.web.server_parts import Owner, Parts, ProjectReader
from weakspot.web.services.compare import other_models
from weakspot.web.services.view import View
from weakspot.web.services.work import check_arguments

router = APIRouter(prefix="/api", tags=["jobs"])
JobId = Annotated[str, Path(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


class StartWork(View):
    """Work to be started.

    Args:
        kind: what is to be done.
        arguments: what that kind takes; unknown ones are refused.
    """

    kind: str = Field(max_length=40)
    arguments: dict[str, JsonValue] = Field(default_factory=dict, max_length=40)


@router.post("/jobs")
def start(asked: StartWork, person: Owner, parts: Parts) -> JobView:
    """Start work; it waits if other work of the project is under way."""
    if asked.kind == "compare":
        # Work gets the name of the other project, and reads where it is.
        other_models(parts.workspace)
    return parts.jobs.start(
        asked.kind, check_arguments(asked.kind, asked.arguments), by=person.name
    )


@router.get("/jobs")
def jobs(_person: ProjectReader, parts: Parts) -> dict[str, list[JobView]]:
    """Return the last works, newest first."""
    return {"jobs": parts.jobs.newest()}


@router.get("/jobs/{job_id}")
def job(job_id: JobId, _person: ProjectReader, parts: Parts) -> JobView:
    """Return one work."""
    return parts.jobs.find(job_id)


@router.post("/jobs/{job_id}/cancel")
def cancel(job_id: JobId, _person: Owner, parts: Parts) -> JobView:
    """Stop a work; what it has finished is kept."""
    return parts.jobs.cancel(job_id)


@router.post("/jobs/{job_id}/resume")
def resume(job_id: JobId, _person: Owner, parts: Parts) -> JobView:
    """Go on with a work that was stopped or failed."""
    return parts.jobs.resume(job_id)
