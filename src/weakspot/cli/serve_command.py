"""The command serve: the browser on a project."""

from pathlib import Path

import typer


def serve(
    project: Path = typer.Option(Path(), "--project", "-p", help="Project folder; it holds weakspot.toml."),
    port: int = typer.Option(8765, "--port", help="Port; 0 takes a free one."),
) -> None:
    """Show a project in the browser: see, say, decide."""
    from weakspot.cli import terminal
    from weakspot.web.serving import serve_project

    serve_project(project, port=port, say=terminal.say)


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command()(serve)
