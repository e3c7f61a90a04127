"""What every request can ask for: the project, the shared state, running work, and who is asking.

A change of something that people share is made with nobody else in between and written down. Open pages are told of all changes,
whether this process, another one or the command line made them.
"""

import asyncio
import hashlib
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Header, Request, Response

from weakspot.core.errors import WeakspotError
from weakspot.store.runs import RECORD_FILE
from weakspot.web.auth.address import ServerAddress
from weakspot.web.auth.login import Login
from weakspot.web.problems import RefusedError
from weakspot.web.services.images import visible_samples
from weakspot.web.services.setup import ProjectSetup
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace, make_beside
from weakspot.web.state.changes import (
    Change,
    SharedState,
    count_finished_jobs,
    keep_change,
    refuse_stale,
    version_of,
)
from weakspot.web.state.store import Person, Role, StateStore

if TYPE_CHECKING:
    from weakspot.web.jobs import JobRunner

LOOK_SECONDS = 1.0
STILL_HERE_SECONDS = 15.0
RETRY_MILLISECONDS = 2000


@dataclass(frozen=True, kw_only=True)
class LiveState:
    """What pages compare.

    Args:
        version: number of the last change that people made.
        mark: differs whenever anything does that pages show.
        tables: which samples, under which labels, there are.
    """

    version: int
    mark: str
    tables: str = ""


class LiveChanges:
    """Looks whether something changed, as long as somebody listens; one thread, however many listen.

    Args:
        look: returns the present state; asks the shared state, so that changes of other processes are seen.
        every: seconds between two looks.
    """

    def __init__(self, look: Callable[[], LiveState], *, every: float = LOOK_SECONDS) -> None:
        self._look = look
        self._every = every
        self._guard = threading.Condition()
        self._listeners: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()
        self._state: LiveState | None = None
        self._is_nudged = False
        self._is_closed = False
        self._thread: threading.Thread | None = None

    @property
    def n_listeners(self) -> int:
        with self._guard:
            return len(self._listeners)

    def nudge(self) -> None:
        """Look at once: something changed here."""
        with self._guard:
            self._is_nudged = True
            self._guard.notify_all()

    def close(self) -> None:
        """End all streams; the server is about to stop and must not wait for them."""
        with self._guard:
            self._is_closed = True
            self._guard.notify_all()
            self._wake()

    async def stream(
        self,
        is_welcome: Callable[[], Awaitable[bool]],
        *,
        still_here: float = STILL_HERE_SECONDS,
    ) -> AsyncIterator[str]:
        """Return server-sent events: the state at first and whenever it changes, and a sign of life now and then.

        Args:
            is_welcome: asked before anything is sent; when the session has ended the stream does, too.
            still_here: seconds between signs of life.
        """
        sent: LiveState | None = None
        with self._listening() as woken:
            yield f"retry: {RETRY_MILLISECONDS}\n\n"
            while not self._is_closed and await is_welcome():
                woken.clear()
                state = self._state
                if state is not None and state != sent:
                    told = json.dumps(asdict(state))
                    yield f"event: change\nid: {state.version}\ndata: {told}\n\n"
                    sent = state
                else:
                    yield ": still here\n\n"
                try:
                    await asyncio.wait_for(woken.wait(), still_here)
                except TimeoutError:
                    continue

    @contextmanager
    def _listening(self) -> Iterator[asyncio.Event]:
        listener = asyncio.get_running_loop(), asyncio.Event()
        with self._guard:
            self._listeners.add(listener)
            # A new listener must not be told of a state that was seen long ago.
            self._state, self._is_nudged = None, True
            if self._thread is None and not self._is_closed:
                self._thread = threading.Thread(target=self._watch, name="live", daemon=True)
                self._thread.start()
            self._guard.notify_all()
        try:
            yield listener[1]
        finally:
            with self._guard:
                self._listeners.discard(listener)
                self._guard.notify_all()

    def _watch(self) -> None:
        while True:
            with self._guard:
                if not self._is_nudged:
                    self._guard.wait(self._every)
                self._is_nudged = False
                if self._is_closed or not self._listeners:
                    self._thread = None
                    return
            try:
                found = self._look()
            except Exception:  # noqa: BLE001 (the next look may succeed)
                continue
            with self._guard:
                if found != self._state:
                    self._state = found
                    self._wake()

    def _wake(self) -> None:
        for loop, event in self._listeners:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)


class ReadyState(StrEnum):
    """Where a server is."""

    SET_UP = "set-up"
    PREPARING = "preparing"
    READY = "ready"
    FAILED = "failed"


class HealthView(View):
    """How a server is.

    Args:
        state: whether the project can be looked at.
        message: what is under way, or what went wrong.
    """

    state: ReadyState
    message: str


class Readiness:
    """How far the project is; ready unless something is prepared."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._health = HealthView(state=ReadyState.READY, message="")
        self._is_closed = False

    @property
    def health(self) -> HealthView:
        with self._guard:
            return self._health

    def prepare(self, make: Callable[[], object]) -> threading.Thread:
        """Do something in a thread of its own; the server is ready when it is done."""
        self._tell(ReadyState.PREPARING, "The project is being opened.")
        thread = threading.Thread(target=self._make, args=(make,), name="prepare", daemon=True)
        thread.start()
        return thread

    def wait_for_setup(self) -> None:
        """Say that the project has no samples yet, and that its owner is asked for them."""
        self._tell(ReadyState.SET_UP, "The project is being set up by its owner.")

    def close(self) -> None:
        """Say that the server ends: what is still being prepared loses its ground and may fail in silence."""
        self._is_closed = True

    def _make(self, make: Callable[[], object]) -> None:
        try:
            make()
        except WeakspotError as error:
            self._tell(
                ReadyState.FAILED, error.what if error.fix is None else f"{error.what} {error.fix}"
            )
        except Exception:
            self._tell(
                ReadyState.FAILED, "The project cannot be opened; the server's log says why."
            )
            if not self._is_closed:
                raise
        else:
            self._tell(ReadyState.READY, "")

    def _tell(self, state: ReadyState, message: str) -> None:
        with self._guard:
            self._health = HealthView(state=state, message=message)


ORDER = (Role.VIEWER, Role.ANNOTATOR, Role.OWNER)


@dataclass(frozen=True, kw_only=True, eq=False)
class ServerParts:
    """Everything that a server holds.

    Args:
        workspace: the opened project.
        state: what people share.
        jobs: work under way.
        owner_token: makes its holder the owner.
        is_read_only: nobody may change anything, for static export: owners become viewers.
        address: how browsers reach the server.
        readiness: how far the project is opened.
        setup: the set-up of a project that has no samples yet, None of any other.
        live: tells open pages of changes.
    """

    workspace: Workspace
    state: StateStore
    jobs: "JobRunner"
    owner_token: str
    is_read_only: bool = False
    address: ServerAddress = field(default_factory=ServerAddress)
    readiness: Readiness = field(default_factory=Readiness)
    setup: ProjectSetup | None = None
    live: LiveChanges = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "live", LiveChanges(lambda: look_for_changes(self)))
        # Without a project there is only the schema.
        if self.workspace is not None:
            self.workspace.shared = SharedState(self.state)

    def open_what_was_set_up(self) -> None:
        """Open the project as soon as it was set up and has a run; nothing else happens before or later."""
        is_waiting = self.readiness.health.state is ReadyState.SET_UP
        if is_waiting and self.setup and self.jobs.process_id is None and self.setup.has_run():
            self.readiness.prepare(lambda: open_workspace(self.workspace))


def open_workspace(workspace: Workspace) -> None:
    """Make what every page needs, and begin with what filters of images read."""
    _ = workspace.problems
    make_beside(workspace, "images", lambda: visible_samples(workspace), patience=0.0)


def look_for_changes(parts: ServerParts) -> LiveState:
    """Return what differs whenever pages would: changes that people made, finished work, other samples, another run."""
    version, runs = version_of(parts.state), parts.workspace.project.store.runs
    newest = runs.run_ids()[-1:]
    written = [(runs.folder / one / RECORD_FILE).stat().st_mtime_ns for one in newest]
    tables = parts.workspace.tables_key
    shown = version, count_finished_jobs(parts.state), tables, newest, written
    mark = hashlib.sha256(repr(shown).encode()).hexdigest()[:16]
    return LiveState(version=version, mark=mark, tables=tables)


def parts_of(request: Request) -> ServerParts:
    found: ServerParts = request.app.state.parts
    return found


def login_of(request: Request) -> Login:
    found: Login = request.app.state.login
    return found


def person_of(request: Request) -> Person:
    """Return who is asking; the middleware has put it there.

    Raises:
        RefusedError: 401 if nobody is signed in.
    """
    person: Person | None = getattr(request.state, "person", None)
    if person is None:
        raise RefusedError(
            401,
            "Nobody is signed in with this browser.",
            fix="Open the address that `weakspot serve` printed.",
        )
    return person


def _at_least(role: Role) -> Any:
    def check(person: Annotated[Person, Depends(person_of)]) -> Person:
        if ORDER.index(person.role) < ORDER.index(role):
            raise RefusedError(
                403, f"Only {'an' if role is not Role.VIEWER else 'a'} {role.value} may do this."
            )
        return person

    return Depends(check)


def _sees_project(person: Annotated[Person, Depends(person_of)]) -> Person:
    if person.role is Role.ANNOTATOR:
        raise RefusedError(403, "Annotators see their study only.")
    return person


Parts = Annotated[ServerParts, Depends(parts_of)]
SignIn = Annotated[Login, Depends(login_of)]
Anyone = Annotated[Person, _at_least(Role.VIEWER)]
Annotator = Annotated[Person, _at_least(Role.ANNOTATOR)]
Owner = Annotated[Person, _at_least(Role.OWNER)]
ProjectReader = Annotated[Person, Depends(_sees_project)]
"""Owners and viewers: annotators see their study only."""


MAX_NUMBER = 2**31 - 1
SEEN = "X-Seen-Change"
MADE = "X-Change"


class Changing:
    """A request that changes something.

    Args:
        parts: what the server holds.
        person: who asks.
        response: gets the number of the new one.
        seen: number of the last change that the page knew of.
    """

    def __init__(
        self,
        parts: Parts,
        person: Anyone,
        response: Response,
        seen: Annotated[
            int | None,
            Header(
                alias=SEEN,
                ge=0,
                le=MAX_NUMBER,
                description="Number of the last change that the page knew of; a newer one of the same thing is not overwritten.",
            ),
        ] = None,
    ) -> None:
        self.parts = parts
        self.person = person
        self.seen = seen
        self._response = response

    @contextmanager
    def alone(self, *subjects: str) -> Iterator[None]:
        """Be the only one who changes the project; refused if one of these things was changed since the page saw it.

        Raises:
            RefusedError: 409 with what was done meanwhile.
        """
        with self.parts.workspace.editing():
            for subject in subjects:
                refuse_stale(self.parts.state, subject, self.seen)
            yield

    def change(self, kind: str, subject: str, sentence: str, **data: Any) -> Change:
        return Change(kind=kind, subject=subject, sentence=sentence, by=self.person.name, data=data)

    def note(self, kind: str, subject: str, sentence: str, **data: Any) -> None:
        """Write down what was done."""
        self.told(keep_change(self.parts.state, self.change(kind, subject, sentence, **data)))

    def told(self, number: int) -> None:
        """Tell the page the number of its change, and all others that there is one."""
        self._response.headers[MADE] = str(number)
        self.parts.live.nudge()


ChangingNow = Annotated[Changing, Depends()]


def slice_subject(slice_id: str) -> str:
    return f"slice {slice_id}"


def repair_subject(run_id: str) -> str:
    return f"repair {run_id}"


def attachment(content: bytes, name: str, media_type: str) -> Response:
    """Return a file that the browser stores under a name."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=media_type, headers=headers)
