"""The command import: files of other tools as tables that weakspot reads."""

from pathlib import Path

import typer

from weakspot.cli.running import JsonOption


def import_(
    source: Path = typer.Argument(..., help="File or folder that the other tool exported."),
    from_: str = typer.Option(..., "--from", help="The other tool: cleanlab, cvat, fiftyone, label-studio, spotlight."),
    out: Path = typer.Option(..., "--out", help="Table to write: .csv, .tsv, .jsonl or .parquet."),
    as_json: bool = JsonOption,
) -> None:
    """Turn what another tool exported into a table for `weakspot ingest` or `weakspot repair --labels`."""
    from weakspot.app.exchanging import import_from
    from weakspot.cli import terminal

    written = import_from(from_, source, out)
    if as_json:
        terminal.print_json({"files": [str(path) for path in written.files], "sentence": written.sentence})
        return
    terminal.say("\n".join([*map(str, written.files), written.sentence]))


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command("import")(import_)
