"""Running the server: take the port, print the address, serve until interrupted.

Beside it the commands that need the shared state and no server: marks written for another tool, and read back.
"""

import contextlib
import errno
import os
import secrets
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import FastAPI

from weakspot.core.errors import ConfigError
from weakspot.project.project import Project
from weakspot.tools.bundle import Written
from weakspot.web.application import HOW_TO_BUILD, are_built, create_app
from weakspot.web.auth.address import ServerAddress
from weakspot.web.auth.login import has_owner_with_password
from weakspot.web.jobs import JobRunner
from weakspot.web.server_parts import ServerParts, open_workspace
from weakspot.web.services.marks import TOOLS, MarkTool, write_marks
from weakspot.web.services.setup import AllowedPlaces, ProjectSetup, begin_setup, needs_setup
from weakspot.web.services.workspace import Workspace
from weakspot.web.state.changes import ReadBack, SharedState, read_back
from weakspot.web.state.store import StateStore

TOKEN_VARIABLE = "WEAKSPOT_TOKEN"
SHORTEST_TOKEN = 20
GRACE_SECONDS = 3
Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class ServeRequest:
    """What is served, and how.

    Args:
        folder: the project folder.
        host: what is listened on.
        port: what is listened on; 0 takes a free one.
        others: project folders to compare with.
        state_url: where people, studies and phrases are kept; in the project folder by default.
        public_address: the address that a proxy shows the server under.
        is_read_only: nobody may change anything.
        opens_browser: whether a browser is started, if there is a display.
        token: that the user chose for the owner; empty: a random one is made.
        data: of a project that is to be set up; asked for in the browser if None.
    """

    folder: Path
    host: str = "127.0.0.1"
    port: int = 8765
    others: Sequence[Path] = ()
    state_url: str = ""
    public_address: str = ""
    is_read_only: bool = False
    opens_browser: bool = True
    token: str = ""
    data: Path | None = None


def serve_project(request: ServeRequest, *, say: Say) -> None:
    """Serve a project until interrupted.

    Raises:
        ConfigError: if the port is taken, or other machines could reach the server and nothing keeps them out.
    """
    address = ServerAddress(host=request.host, port=request.port, public=request.public_address)
    setup = _setup(request, is_local=address.is_local)
    workspace = (
        setup.workspace
        if setup
        else Workspace(Project.open(request.folder), others=tuple(request.others))
    )
    project = workspace.project
    with contextlib.closing(open_state(project, request.state_url)) as state:
        owner_token = _owner_token(request, address, state)
        with contextlib.closing(listen(request.host, request.port)) as listening:
            address = replace(address, port=int(listening.getsockname()[1]))
            jobs = JobRunner(folder=project.folder, state=state)
            with contextlib.closing(jobs):
                parts = ServerParts(
                    workspace=workspace,
                    state=state,
                    jobs=jobs,
                    owner_token=owner_token,
                    is_read_only=request.is_read_only,
                    address=address,
                    setup=setup,
                )
                with contextlib.closing(parts.readiness) as readiness:
                    if setup:
                        readiness.wait_for_setup()
                    else:
                        readiness.prepare(lambda: open_workspace(parts.workspace))
                    _serve(parts, listening, request, say)


def _setup(request: ServeRequest, *, is_local: bool) -> ProjectSetup | None:
    """Return the set-up of a project that has no samples yet, None of one that has.

    What may be read is what lies below the folder in which the server was started and below the project folder, and what the
    command line names.
    """
    if not needs_setup(request.folder, request.data):
        return None
    if request.is_read_only:
        raise ConfigError(
            "The project has no samples yet, so there is nothing to show.",
            where=str(request.folder),
            fix="Leave --read-only out to set it up in the browser, or run `weakspot run` first.",
        )
    roots = [Path.cwd(), request.folder, *([request.data] if request.data else [])]
    source = str(request.data.resolve()) if request.data else ""
    return begin_setup(
        request.folder,
        places=AllowedPlaces(start=Path.cwd(), roots=roots),
        source=source,
        may_use_network=is_local,
    )


def open_state(project: Project, url: str = "") -> StateStore:
    """Open the shared state of a project: in its folder, or where the address says."""
    return StateStore(url) if url else StateStore.beside(project.store.data)


def read_token() -> str:
    """Return the owner's token that the user chose, empty if there is none.

    Raises:
        ConfigError: if it is too short to keep anybody out.
    """
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if token and len(token) < SHORTEST_TOKEN:
        raise ConfigError(
            f"The token has {len(token)} characters; at least {SHORTEST_TOKEN} are needed.",
            where=TOKEN_VARIABLE,
            fix="For example: python -c 'import secrets; print(secrets.token_urlsafe(24))'",
        )
    return token


def _owner_token(request: ServeRequest, address: ServerAddress, state: StateStore) -> str:
    if request.token or address.is_local:
        return request.token or secrets.token_urlsafe(24)
    if has_owner_with_password(state):
        return ""
    raise ConfigError(
        f"Other machines can reach {request.host}, and nothing keeps them out.",
        where="--host",
        fix=f"Set {TOKEN_VARIABLE} to a secret of at least {SHORTEST_TOKEN} characters, or make an owner with a password: "
        "weakspot serve --set-password NAME.",
    )


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; it is taken before anything is printed."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        found = socket.socket(family, kind, protocol)
        try:
            if os.name == "posix":
                found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(place)
            found.listen(128)
        except BaseException:
            found.close()
            raise
        return found
    except (OSError, UnicodeError) as error:
        raise _refused_port(error, host, port) from error


def _refused_port(error: Exception, host: str, port: int) -> ConfigError:
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        fix = "Give another one with --port; 0 takes a free one."
        return ConfigError(
            f"The port {port} is taken by another program.", where="--port", given=port, fix=fix
        )
    if isinstance(error, OSError) and error.errno == errno.EACCES:
        return ConfigError(
            f"The port {port} may not be used by you.",
            where="--port",
            given=port,
            fix="Give one above 1023.",
        )
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return ConfigError(f"The server cannot listen on {host}: {reason}.", where="--host", given=host)


def _serve(parts: ServerParts, listening: socket.socket, request: ServeRequest, say: Say) -> None:
    app = create_app(parts)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        lifespan="off",
        proxy_headers=bool(request.public_address),
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    with _end_like_interrupted():
        _greet(parts, app, request, say)
        _EndingServer(config, parts).run(sockets=[listening])


class _EndingServer(uvicorn.Server):  # type: ignore[misc]  # uvicorn has no types here
    """A server that ends streams as soon as it is told to stop, instead of waiting for pages that listen."""

    def __init__(self, config: uvicorn.Config, parts: ServerParts) -> None:
        super().__init__(config)
        self._parts = parts

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._parts.live.close()
        super().handle_exit(sig, frame)


def _greet(parts: ServerParts, app: FastAPI, request: ServeRequest, say: Say) -> None:
    address = parts.address
    if not are_built():
        say(f"The pages are not built in this installation. Run: {HOW_TO_BUILD}")
    if request.token:
        say(f"{address.shown()} (sign in with the token in {TOKEN_VARIABLE})")
    elif parts.owner_token:
        say(address.shown(f"#token={parts.owner_token}"))
    else:
        say(f"{address.shown()} (sign in with name and password)")
    if parts.setup is not None:
        say(f"The project {request.folder} has no samples yet: the page asks for them.")
    say("Ctrl-C ends the server; everything is kept.")
    missing = parts.workspace.missing_images()
    if missing is not None:
        say(f"warning: {missing.notice}")
    if request.opens_browser and address.is_local and has_display():
        fragment = f"#token={app.state.login.token_for_once()}"
        threading.Thread(
            target=webbrowser.open, args=(address.shown(fragment),), daemon=True
        ).start()


def has_display() -> bool:
    """Return whether a browser can be shown on this machine."""
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


@contextlib.contextmanager
def _end_like_interrupted() -> Iterator[None]:
    """Let a polite request to end be the same as Ctrl-C, so that work under way stops too."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        return
    finally:
        signal.signal(signal.SIGTERM, before)


BY = "command line"


def export_marks(folder: Path, tool: str, target: Path, *, state_url: str = "") -> Written:
    """Write images that people marked for another tool, or as a table.

    Raises:
        ConfigError: if there is no such format.
        DataError: if nothing is marked.
    """
    project = Project.open(folder)
    with contextlib.closing(open_state(project, state_url)) as state:
        return write_marks(project, SharedState(state).marks(), _known(tool), target)


def import_marks(folder: Path, tool: str, source: Path, *, state_url: str = "") -> ReadBack:
    """Keep what a file says of images as marks of a project.

    Raises:
        ConfigError: if there is no such format or file.
        DataError: if the file says nothing of images.
    """
    project = Project.open(folder)
    if not source.is_file():
        raise ConfigError("There is no file at this path.", where=str(source))
    with contextlib.closing(open_state(project, state_url)) as state:
        workspace = Workspace(project)
        workspace.shared = SharedState(state)
        return read_back(workspace, state, _known(tool), source, by=BY)[0]


def _known(tool: str) -> MarkTool:
    if tool not in TOOLS:
        raise ConfigError(
            f"Marks have no format {tool!r}.", given=tool, fix=f"Choose one of {', '.join(TOOLS)}."
        )
    return tool
