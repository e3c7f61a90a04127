"""What pages show of a work."""

from enum import StrEnum

from pydantic import JsonValue

from weakspot.web.services.view import Moment, View


class JobState(StrEnum):
    """Where a work is. Those that are cancelled, interrupted or failed can be resumed."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"


UNDER_WAY = (JobState.QUEUED, JobState.RUNNING)


class JobView(View):
    """Long work that somebody started.

    Args:
        job_id: unguessable.
        kind: what is done.
        arguments: what it was started with.
        state: where it is.
        stage: the step that is under way.
        done: how many items of the step are done.
        total: how many there are, if that is known.
        message: what went wrong, or what is waited for.
        result: ids and figures, when it is done.
        started_by: name of a person.
        created: when it was started.
        finished: None while it is under way.
        seconds_left: for the step that is under way, if its pace is known.
    """

    job_id: str
    kind: str
    arguments: dict[str, JsonValue]
    state: JobState
    stage: str
    done: int
    total: int | None
    message: str
    result: dict[str, JsonValue]
    started_by: str
    created: Moment
    finished: Moment | None
    seconds_left: int | None = None


class JobsView(View):
    """The last works, newest first."""

    jobs: list[JobView]
