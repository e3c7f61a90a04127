"""The command export: the project for another tool, or the browser's read-only pages as files."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weakspot.cli.running import JsonOption, ProjectOption
from weakspot.core.errors import ConfigError

if TYPE_CHECKING:
    from weakspot.app.exchanging import ExportCall
    from weakspot.web.static_export import ExportRequest


def export(
    static: Path | None = typer.Option(None, "--static", help="Folder to write the read-only pages to; it is made."),
    to: str = typer.Option(
        "",
        "--to",
        help="Another tool, with --out: cleanlab, coco, cvat, fiftyone, huggingface, label-studio, mlflow, spotlight or wandb.",
    ),
    out: Path | None = typer.Option(None, "--out", help="Folder for the files of the other tool; it is made."),
    project: Path = ProjectOption,
    run: str = typer.Option("", "--run", help="The run that is shown; the newest by default."),
    copy_pictures: bool = typer.Option(False, "--copy-pictures", help="With --to: copy pictures instead of pointing to them."),
    most_samples: int = typer.Option(4000, "--most-samples", min=0, help="Pictures of so many samples at most."),
    most_megabytes: float = typer.Option(60.0, "--most-megabytes", min=1.0, help="Size of data and pictures together."),
    force: bool = typer.Option(False, "--force", help="Replace an earlier export in this folder."),
    as_json: bool = JsonOption,
) -> None:
    """Write a project for another tool (--to), or the browser's pages as files: open index.html, no server is needed (--static)."""
    if static is not None and not to and out is None:
        from weakspot.cli.serve_command import require_web

        require_web()
        from weakspot.web.static_export import ExportRequest

        request = ExportRequest(
            project=project,
            folder=static,
            run_id=run or None,
            most_samples=most_samples,
            most_megabytes=most_megabytes,
            is_forced=force,
        )
        _export_static(request, as_json=as_json)
        return
    if static is not None or not to or out is None:
        raise _unclear(static=static, to=to, out=out)
    from weakspot.app.exchanging import ExportCall

    call = ExportCall(to=to, folder=out, run_id=run or None, copies_pictures=copy_pictures)
    _export_to(project, call, as_json=as_json)


def _unclear(*, static: Path | None, to: str, out: Path | None) -> ConfigError:
    from weakspot.app.exchanging import EXPORTS

    given = {"--static": static, "--to": to, "--out": out}
    named = " ".join(f"{option} {value}" for option, value in given.items() if value)
    return ConfigError(
        "It is not clear what to export.",
        given=named or None,
        fix=f"Give --static FOLDER for the pages, or --to NAME --out FOLDER for another tool: {', '.join(EXPORTS)}.",
    )


def _export_to(project: Path, call: "ExportCall", *, as_json: bool) -> None:
    from weakspot.app.exchanging import export_to
    from weakspot.app.project import Project
    from weakspot.cli import terminal

    written = export_to(Project.open(project), call)
    if as_json:
        terminal.print_json({"files": [str(path) for path in written.files], "sentence": written.sentence})
        return
    terminal.say("\n".join([*map(str, written.files), written.sentence]))


def _export_static(request: "ExportRequest", *, as_json: bool) -> None:
    from weakspot.cli import terminal
    from weakspot.web.static_export import export_static

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
