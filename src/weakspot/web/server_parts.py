"""What every request can ask for: the project, the shared state, running work, and who is asking."""

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Request

from weakspot.core.errors import WeakspotError
from weakspot.store.runs import RECORD_FILE
from weakspot.web.auth.address import ServerAddress
from weakspot.web.auth.login import Login
from weakspot.web.live import LiveChanges, LiveState
from weakspot.web.problems import RefusedError
from weakspot.web.roles import Person, Role
from weakspot.web.services.images.visible import visible_samples
from weakspot.web.services.setup.project import ProjectSetup
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace, make_beside
from weakspot.web.state.changes import count_finished_jobs, version_of
from weakspot.web.state.marks import SharedState
from weakspot.web.state.store import StateStore


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


if TYPE_CHECKING:
    from weakspot.web.jobs.runner import JobRunner

ORDER = (Role.VIEWER, Role.ANNOTATOR, Role.OWNER)


@dataclass(frozen=True, kw_only=True, eq=False)
class ServerParts:
    """Everything that a server holds.

    Args:
        workspace: the opened project.
        state: what people share.
        jobs: work under way.
        owner_token: whoever has it is the owner.
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
