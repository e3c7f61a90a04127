"""Long work in processes of its own: started one at a time, watched, cancelled and continued.

Its outcome stays in the shared state.
"""

import fcntl
import json
import logging
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import IO

from pydantic import JsonValue
from sqlalchemy import Connection, insert, select, update

from weakspot.core.machine import Pace, next_pace
from weakspot.store.project import DATA_FOLDER
from weakspot.web.problems import RefusedError
from weakspot.web.services.view import Moment, View
from weakspot.web.state.store import JOBS, StateStore, entry_of, now


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


WORKER = (sys.executable, "-m", "weakspot.web.worker")
GRACE_SECONDS = 10.0
MAX_TAIL_LENGTH = 4000


class WorkerProcess:
    """A process of one work, with a process group of its own.

    Args:
        command: what to start.
        request: its first line of input; the input stays open until the process has ended.
        inherited: numbers of open files that it shall hold as long as it lives.
    """

    def __init__(
        self,
        command: Sequence[str],
        request: dict[str, JsonValue],
        *,
        inherited: Sequence[int] = (),
    ) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `ended`, after the process
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
            pass_fds=tuple(inherited),
        )
        assert self._process.stdin is not None
        # If it has ended already, `ended` says how.
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()

    @property
    def process_id(self) -> int:
        """Return its id, for people who look at the machine."""
        return self._process.pid

    def messages(self) -> Iterator[dict[str, JsonValue]]:
        """Yield what it says until it ends; lines that are no JSON object are passed over."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict):
                yield found

    def wait(self) -> tuple[int, str]:
        """Wait for its end; return its exit code (negative: the signal that ended it) and the tail of what it wrote as errors."""
        code = self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - MAX_TAIL_LENGTH))
        tail = self._errors.read().decode(errors="replace")
        self._errors.close()
        return code, tail

    def end(self) -> None:
        """Ask it to stop, then tell it to, then make it; returns at once."""
        threading.Thread(target=self._end, daemon=True, name="end of a work").start()

    def _end(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self._process.pid, number)
            except ProcessLookupError:
                return
            try:
                self._process.wait(timeout=GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                continue
            return


class ProcessLock:
    """A lock file that this process holds, and with it every process that inherits its number.

    Args:
        path: of the lock file; made if need be.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def take(self) -> bool:
        """Return whether nobody else holds it; from then on we do."""
        try:
            fcntl.flock(self.number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def let_go(self) -> None:
        """Let go; processes that inherited it hold on."""
        os.close(self.number)


def is_held(path: Path) -> bool:
    if not path.exists():
        return False
    hold = ProcessLock(path)
    try:
        return not hold.take()
    finally:
        hold.let_go()


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
        self._holds: dict[str, ProcessLock] = {}
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
        job = insert(JOBS).values(
            job_id=job_id,
            kind=kind,
            arguments=dict(arguments),
            state=JobState.QUEUED.value,
            started_by=by,
            created=now(),
        )
        with self._state.writing() as rows:
            view = JobView.model_validate(rows.execute(job.returning(JOBS)).one())
        self._enqueue(job_id)
        return view

    def resume(self, job_id: str) -> JobView:
        """Go on with a work that was stopped or failed.

        Raises:
            RefusedError: 404 if there is none, 409 if it is under way or done.
        """
        self._notice_the_lost()
        with self._state.writing() as rows:
            state = _job(rows, job_id).state
            if state in (*UNDER_WAY, JobState.DONE):
                raise RefusedError(
                    409, f"This work is {state.value}, so there is nothing to resume."
                )
            self._hold(job_id)
            fresh = {"message": "", "stage": "", "done": 0, "total": None, "finished": None}
            again = update(JOBS).filter_by(job_id=job_id)
            again = again.values(state=JobState.QUEUED.value, **fresh)
            view = JobView.model_validate(rows.execute(again.returning(JOBS)).one())
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
            elif (
                self._running is not None
                and self._running[0] == job_id
                # It may have ended a moment ago and not be put away yet.
                and self.find(job_id).state in UNDER_WAY
            ):
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

    def find(self, job_id: str) -> JobView:
        """Return a work.

        Raises:
            RefusedError: 404 if there is none.
        """
        with self._state.reading() as rows:
            return self._with_time(_job(rows, job_id))

    def newest(self) -> list[JobView]:
        self._notice_the_lost()
        with self._state.reading() as rows:
            newest = select(JOBS).order_by(JOBS.c.created.desc(), JOBS.c.job_id).limit(N_SHOWN)
            return [self._with_time(JobView.model_validate(job)) for job in rows.execute(newest)]

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
        hold = ProcessLock(self._lock(job_id))
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
        turn = ProcessLock(self._locks / ROUND_FILE)
        try:
            if self._has_turn(job_id, turn):
                self._watch(job_id, turn)
        finally:
            turn.let_go()

    def _has_turn(self, job_id: str, turn: ProcessLock) -> bool:
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

    def _watch(self, job_id: str, turn: ProcessLock) -> None:
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
            rows.execute(update(JOBS).filter_by(job_id=job_id).values(**fields))

    def _notice_the_lost(self) -> None:
        """Mark works that say they are under way but that nobody alive holds: their server or process was killed."""
        under_way = [state.value for state in UNDER_WAY]
        with self._state.reading() as rows:
            found = rows.scalars(select(JOBS.c.job_id).where(JOBS.c.state.in_(under_way))).all()
        lost = [
            job_id
            for job_id in found
            if job_id not in self._holds and not is_held(self._lock(job_id))
        ]
        if not lost:
            return
        ended = update(JOBS).where(JOBS.c.job_id.in_(lost), JOBS.c.state.in_(under_way))
        ended = ended.values(state=JobState.INTERRUPTED.value, message=SERVER_GONE, finished=now())
        with self._state.writing() as rows:
            for job_id in rows.scalars(ended.returning(JOBS.c.job_id)):
                self._lock(job_id).unlink(missing_ok=True)

    def _lock(self, job_id: str) -> Path:
        return self._locks / f"{job_id}.lock"


def _job(rows: Connection, job_id: str) -> JobView:
    job = entry_of(rows, JOBS, job_id=job_id)
    if job is None:
        raise RefusedError(404, "There is no such work.")
    return JobView.model_validate(job)


def _end_sentence(code: int) -> str:
    if code < 0:
        return f"Its process was ended from outside (signal {-code}); perhaps memory ran out. What was finished is kept."
    return f"Its process ended too early (exit code {code}). The server's log says more; what was finished is kept."
