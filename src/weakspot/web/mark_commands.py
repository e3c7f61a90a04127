"""Marks from the command line: written for another tool, and read back."""

import contextlib
from pathlib import Path

from weakspot.core.errors import ConfigError
from weakspot.integrations.bundle import Written
from weakspot.project.project import Project
from weakspot.web.services.marks.files import TOOLS, MarkTool, write_marks
from weakspot.web.services.workspace import Workspace
from weakspot.web.serving import open_state
from weakspot.web.state.marks import SharedState
from weakspot.web.state.reading_marks import ReadBack, read_back

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
