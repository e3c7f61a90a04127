"""The command `exchange`."""

import typer


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
