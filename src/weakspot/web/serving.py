"""Running the server: open the project, print the address, serve until interrupted."""

import secrets
from collections.abc import Callable
from pathlib import Path

import uvicorn

from weakspot.app.browsing.workspace import Workspace
from weakspot.app.project import Project
from weakspot.web.application import create_app
from weakspot.web.jobs.runner import JobRunner
from weakspot.web.server_parts import ServerParts
from weakspot.web.state.store import StateStore


def serve_project(folder: Path, *, port: int, say: Callable[[str], None]) -> None:
    """Serve a project on this machine only."""
    project = Project.open(folder)
    state = StateStore.beside(project.store.data)
    parts = ServerParts(
        workspace=Workspace(project),
        state=state,
        jobs=JobRunner(folder, state),
        owner_token=secrets.token_urlsafe(24),
    )
    say(f"http://127.0.0.1:{port}/#token={parts.owner_token}")
    try:
        uvicorn.run(create_app(parts), host="127.0.0.1", port=port, log_level="warning")
    finally:
        parts.jobs.close()
        state.close()
