"""What pages are told of a work."""

from enum import StrEnum

from pydantic import JsonValue

from weakspot.app.browsing.view import View
from weakspot.web.state.tables import JobRow


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
        arguments: what it was told.
        state: where it is.
        stage: the step that is under way.
        done: how many items of the step are done.
        total: how many there are, if that is known.
        message: what went wrong, or what is waited for.
        result: ids and figures, when it is done.
        started_by: name of a person.
        created: ISO 8601, UTC.
        finished: ISO 8601, UTC; None while it is under way.
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
    created: str
    finished: str | None

    @classmethod
    def of(cls, row: JobRow) -> "JobView":
        """Return a row as pages see it."""
        return cls(
            job_id=row.job_id,
            kind=row.kind,
            arguments=row.arguments,
            state=JobState(row.state),
            stage=row.stage,
            done=row.done,
            total=row.total,
            message=row.message,
            result=row.result,
            started_by=row.started_by,
            created=row.created.isoformat(timespec="seconds"),
            finished=None if row.finished is None else row.finished.isoformat(timespec="seconds"),
        )


class JobsView(View):
    """The last works, newest first."""

    jobs: list[JobView]
