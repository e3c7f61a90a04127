"""The command export: the browser's read-only pages as files."""

from pathlib import Path

import typer

from weakspot.cli.running import JsonOption, ProjectOption


def export(
    static: Path = typer.Option(..., "--static", help="Folder to write the read-only pages to; it is made."),
    project: Path = ProjectOption,
    run: str = typer.Option("", "--run", help="The run that is shown; the newest by default."),
    most_samples: int = typer.Option(4000, "--most-samples", min=0, help="Pictures of so many samples at most."),
    most_megabytes: float = typer.Option(60.0, "--most-megabytes", min=1.0, help="Size of data and pictures together."),
    force: bool = typer.Option(False, "--force", help="Replace an earlier export in this folder."),
    as_json: bool = JsonOption,
) -> None:
    """Write the browser's read-only pages as files, for places without ports: open index.html, no server is needed."""
    from weakspot.cli import terminal
    from weakspot.cli.serve_command import require_web

    require_web()
    from weakspot.web.static_export import ExportRequest, export_static

    request = ExportRequest(
        project=project,
        folder=static,
        run_id=run or None,
        most_samples=most_samples,
        most_megabytes=most_megabytes,
        is_forced=force,
    )
    summary = export_static(request, say=terminal.remark)
    if as_json:
        terminal.print_json(
            {
                "index": str(summary.index),
                "n_answers": summary.n_answers,
                "n_pictures": summary.n_pictures,
                "n_bytes": summary.n_bytes,
                "notes": list(summary.notes),
            }
        )
        return
    size = f"{summary.n_bytes / 1e6:.1f} MB, {summary.n_pictures:,} pictures"
    terminal.say("\n".join([*summary.notes, f"Pages ({size}): {summary.index}"]))


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command()(export)
