"""What commands that draw pictures share."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from weakspot.app.project import Project
    from weakspot.core.run import StageProgress

GeneratorOption = typer.Option("", "--generator", help="Registered image generator to use instead of the configured one.")


def opened_with(folder: Path, generator: str, engine: str, progress: "StageProgress") -> "Project":
    """Open a project, with another generator and engine if they are named."""
    from weakspot.app.config import load_settings, with_engine
    from weakspot.app.generator_choice import with_generator
    from weakspot.app.project import Project

    settings = with_engine(with_generator(load_settings(folder), generator), engine)
    return Project(folder, settings, progress=progress)


def show_cost(opened: "Project", n_pictures: int) -> None:
    """Say on the error stream what the pictures cost at most, before any is asked for."""
    from weakspot.app.generator_choice import expected_cost
    from weakspot.cli import terminal

    terminal.remark(expected_cost(opened.settings, opened.folder, n_pictures))
