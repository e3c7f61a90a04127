"""Starts work in processes, one at a time, and keeps what became of it in the shared state."""

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import JsonValue
from sqlalchemy import select

from weakspot.core.pace import Pace, next_pace
from weakspot.store.project import DATA_FOLDER
from weakspot.web.jobs.job_view import UNDER_WAY, JobState, JobView
from weakspot.web.jobs.process import WORKER, Hold, WorkerProcess, is_held
from weakspot.web.problems import RefusedError
from weakspot.web.state.store import StateStore, now
from weakspot.web.state.tables import JobRow

LOCKS_FOLDER = "work"
ROUND_FILE = "turn.lock"
N_SHOWN = 50
WAIT_SECONDS = 0.1
TELL_SECONDS = 0.25
STOPPED = "What was finished is kept."
SERVER_GONE = "The server was stopped before this was done; what was finished is kept."
WAITING = "Another process works on this project."
STOPPING = "It is being stopped."

log = logging.getLogger(__name__)


class JobRunner:
    """Work under way, and the works before it. Every method may be called from several threads.

    A row that says that it waits or runs is believed only as long as somebody holds its lock file: its server, or its process.

    Args:
        folder: the project folder.
        state: where works are kept.
        command: what is started for a work.
    """

    def __init__(self, folder: Path, state: StateStore, *, command: Sequence[str] = WORKER) -> None:
        self._folder = folder.absolute()
        self._locks = self._folder / DATA_FOLDER / LOCKS_FOLDER
        self._state = state
        self._command = tuple(command)
        self._change = threading.Condition()
        self._waiting: deque[str] = deque()
        self._holds: dict[str, Hold] = {}
        self._running: tuple[str, WorkerProcess | None] | None = None
        self._unwanted: set[str] = set()
        self._paces: dict[str, Pace] = {}
        self._is_closed = False
        self._thread: threading.Thread | None = None
        self._notice_the_lost()

    def start(self, kind: str, arguments: Mapping[str, JsonValue], *, by: str) -> JobView:
        """Start work, or put it behind the work that is under way; the arguments were checked before."""
        job_id = secrets.token_urlsafe(12)
        self._hold(job_id)
        row = JobRow(
            job_id=job_id,
            kind=kind,
            arguments=dict(arguments),
            state=JobState.QUEUED.value,
            stage="",
            done=0,
            message="",
            result={},
            started_by=by,
            created=now(),
        )
        with self._state.writing() as rows:
            rows.add(row)
            view = JobView.model_validate(row)
        self._enqueue(job_id)
        return view

    def resume(self, job_id: str) -> JobView:
        """Go on with a work that was stopped or failed.

        Raises:
            RefusedError: 404 if there is none, 409 if it is under way or done.
        """
        self._notice_the_lost()
        with self._state.writing() as rows:
            row = _row(rows.get(JobRow, job_id))
            if row.state in UNDER_WAY or row.state == JobState.DONE:
                raise RefusedError(409, f"This work is {row.state}, so there is nothing to resume.")
            self._hold(job_id)
            row.state, row.message, row.finished, row.done, row.total, row.stage = (
                JobState.QUEUED.value,
                "",
                None,
                0,
                None,
                "",
            )
            view = JobView.model_validate(row)
        self._enqueue(job_id)
        return view

    def cancel(self, job_id: str) -> JobView:
        """Stop a work: at once if it waits, else it is asked, then signalled, and at last killed.

        Raises:
            RefusedError: 404 if there is none, 409 if it is not under way here.
        """
        self._notice_the_lost()
        with self._change:
            if job_id in self._waiting:
                self._waiting.remove(job_id)
                self._finish(job_id, JobState.CANCELLED, STOPPED)
            elif self._running is not None and self._is_under_way(self._running[0], job_id):
                self._unwanted.add(job_id)
                self._write(job_id, message=STOPPING)
                if self._running[1] is not None:
                    self._running[1].end()
            else:
                found = self.find(job_id)
                raise RefusedError(
                    409, f"This work is {found.state.value}, so it cannot be stopped here."
                )
        return self.find(job_id)

    def _is_under_way(self, running_id: str, job_id: str) -> bool:
        """Return whether a work goes on; it may have ended a moment ago and not be put away yet."""
        return running_id == job_id and self.find(job_id).state in UNDER_WAY

    def find(self, job_id: str) -> JobView:
        """Return a work.

        Raises:
            RefusedError: 404 if there is none.
        """
        with self._state.reading() as rows:
            return self._with_time(JobView.model_validate(_row(rows.get(JobRow, job_id))))

    def newest(self) -> list[JobView]:
        self._notice_the_lost()
        with self._state.reading() as rows:
            found = rows.scalars(
                select(JobRow).order_by(JobRow.created.desc(), JobRow.job_id).limit(N_SHOWN)
            ).all()
            return [self._with_time(JobView.model_validate(row)) for row in found]

    def _with_time(self, view: JobView) -> JobView:
        pace = self._paces.get(view.job_id)
        if pace is None or view.state is not JobState.RUNNING:
            return view
        return view.model_copy(update={"seconds_left": pace.seconds_left(time.monotonic())})

    @property
    def process_id(self) -> int | None:
        """Return the id of the process that works now, None if none does."""
        with self._change:
            return (
                self._running[1].process_id
                if self._running is not None and self._running[1] is not None
                else None
            )

    def close(self) -> None:
        """Stop everything, and wait until it has stopped; what waited or ran can be resumed later."""
        with self._change:
            self._is_closed = True
            while self._waiting:
                self._finish(self._waiting.popleft(), JobState.INTERRUPTED, SERVER_GONE)
            if self._running is not None and self._running[1] is not None:
                self._running[1].end()
            self._change.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _hold(self, job_id: str) -> None:
        """Show that a work has somebody who looks after it, before its row says that it is under way."""
        hold = Hold(self._lock(job_id))
        hold.take()
        self._holds[job_id] = hold

    def _enqueue(self, job_id: str) -> None:
        with self._change:
            if self._is_closed:
                self._finish(job_id, JobState.INTERRUPTED, SERVER_GONE)
                return
            self._waiting.append(job_id)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work_through, daemon=True, name="works"
                )
                self._thread.start()
            self._change.notify_all()

    def _work_through(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._waiting or self._is_closed)
                if self._is_closed:
                    return
                job_id = self._waiting.popleft()
                self._running = (job_id, None)
            try:
                self._work(job_id)
            except Exception:
                log.exception("The work %s cannot be watched.", job_id)
                self._finish(
                    job_id,
                    JobState.FAILED,
                    "The work could not be started or watched. The server's log says more.",
                )
            finally:
                with self._change:
                    self._running = None
                    self._unwanted.discard(job_id)

    def _work(self, job_id: str) -> None:
        turn = Hold(self._locks / ROUND_FILE)
        try:
            if self._has_turn(job_id, turn):
                self._watch(job_id, turn)
        finally:
            turn.let_go()

    def _has_turn(self, job_id: str, turn: Hold) -> bool:
        """Wait until no other process works on the project, a worker of an ended server for example; not if it is called off."""
        was_stopped = False
        while not self._is_unwanted(job_id):
            if turn.take():
                return True
            if not was_stopped:
                self._write(job_id, message=WAITING)
                was_stopped = True
            time.sleep(WAIT_SECONDS)
        self._finish_unwanted(job_id)
        return False

    def _watch(self, job_id: str, turn: Hold) -> None:
        view = self.find(job_id)
        request: dict[str, JsonValue] = {
            "folder": str(self._folder),
            "kind": view.kind,
            "arguments": view.arguments,
        }
        with self._change:
            if self._is_unwanted(job_id):
                self._finish_unwanted(job_id)
                return
            process = WorkerProcess(
                self._command, request, inherited=(turn.number, self._holds[job_id].number)
            )
            self._running = (job_id, process)
        self._write(job_id, state=JobState.RUNNING.value, message="")
        final = self._follow(job_id, process)
        code, tail = process.wait()
        if code == 0 and isinstance(final.get("result"), dict):
            self._finish(job_id, JobState.DONE, "", result=final["result"])
        elif self._is_unwanted(job_id):
            self._finish_unwanted(job_id)
        else:
            log.warning("The work %s (%s) ended with %s.\n%s", job_id, view.kind, code, tail)
            state = JobState.FAILED if "error" in final else JobState.INTERRUPTED
            self._finish(job_id, state, str(final.get("error", "")) or _end_sentence(code))

    def _follow(self, job_id: str, process: WorkerProcess) -> dict[str, JsonValue]:
        """Keep how far a process is, a few times a second and at every new stage, and return its last message."""
        last_stage, last_time, final = None, 0.0, dict[str, JsonValue]()
        for message in process.messages():
            if "stage" not in message:
                final = message
                continue
            stage, done, total = message["stage"], message["done"], message["total"]
            assert isinstance(stage, str)
            assert isinstance(done, int)
            assert total is None or isinstance(total, int)
            is_soon = stage == last_stage and time.monotonic() - last_time < TELL_SECONDS
            if is_soon and done != total:
                continue
            last_stage, last_time = stage, time.monotonic()
            self._paces[job_id] = next_pace(self._paces.get(job_id), stage, done, total, last_time)
            self._write(job_id, stage=stage, done=done, total=total)
        return final

    def _is_unwanted(self, job_id: str) -> bool:
        return self._is_closed or job_id in self._unwanted

    def _finish_unwanted(self, job_id: str) -> None:
        if job_id in self._unwanted:
            self._finish(job_id, JobState.CANCELLED, STOPPED)
        else:
            self._finish(job_id, JobState.INTERRUPTED, SERVER_GONE)

    def _finish(
        self, job_id: str, state: JobState, message: str, *, result: JsonValue = None
    ) -> None:
        self._write(job_id, state=state.value, message=message, result=result or {}, finished=now())
        with self._change:
            self._paces.pop(job_id, None)
            hold = self._holds.pop(job_id, None)
        if hold is not None:
            hold.path.unlink(missing_ok=True)
            hold.let_go()

    def _write(self, job_id: str, **fields: object) -> None:
        with self._state.writing() as rows:
            row = rows.get(JobRow, job_id)
            if row is None:
                return
            for name, value in fields.items():
                setattr(row, name, value)

    def _notice_the_lost(self) -> None:
        """Mark works that say they are under way but that nobody alive holds: their server or process was killed."""
        under_way = [state.value for state in UNDER_WAY]
        with self._state.reading() as rows:
            found = rows.scalars(select(JobRow.job_id).where(JobRow.state.in_(under_way))).all()
        lost = [
            job_id
            for job_id in found
            if job_id not in self._holds and not is_held(self._lock(job_id))
        ]
        if not lost:
            return
        with self._state.writing() as rows:
            for row in rows.scalars(
                select(JobRow).where(JobRow.job_id.in_(lost), JobRow.state.in_(under_way))
            ):
                row.state, row.message, row.finished = (
                    JobState.INTERRUPTED.value,
                    SERVER_GONE,
                    now(),
                )
                self._lock(row.job_id).unlink(missing_ok=True)

    def _lock(self, job_id: str) -> Path:
        return self._locks / f"{job_id}.lock"


def _row(row: JobRow | None) -> JobRow:
    if row is None:
        raise RefusedError(404, "There is no such work.")
    return row


def _end_sentence(code: int) -> str:
    if code < 0:
        return f"Its process was ended from outside (signal {-code}); perhaps memory ran out. What was finished is kept."
    return f"Its process ended too early (exit code {code}). The server's log says more; what was finished is kept."
