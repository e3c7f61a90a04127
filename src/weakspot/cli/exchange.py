"""Commands that exchange files: import from other tools, export to them or as read-only pages."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weakspot.cli.options import JsonOption, ProjectOption, show
from weakspot.core.errors import ConfigError

if TYPE_CHECKING:
    from weakspot.tools.bundle import Written

StateOption = typer.Option(
    "", "--state", help="With --marks: where they are; in the project folder by default."
)


def import_(
    source: Path = typer.Argument(..., help="File or folder that the other tool exported."),
    from_: str = typer.Option(
        ..., "--from", help="The other tool: cleanlab, cvat, fiftyone, label-studio, spotlight."
    ),
    out: Path | None = typer.Option(
        None, "--out", help="Table to write: .csv, .tsv, .jsonl or .parquet."
    ),
    marks: bool = typer.Option(
        False,
        "--marks",
        help="Keep them as marks of the project instead: labels that differ are marked as wrong. Also --from csv.",
    ),
    project: Path = ProjectOption,
    state: str = StateOption,
    as_json: bool = JsonOption,
) -> None:
    """Read files of another tool: as a table for `weakspot ingest` or `weakspot repair --labels`, or as marks (--marks)."""
    if marks == (out is not None):
        raise ConfigError(
            "No place to import to is given.",
            fix="Give --out TABLE, or --marks for marks of the project.",
        )
    if out is None:
        _import_marks(project, from_, source, state=state, as_json=as_json)
        return
    from weakspot.tools.exchange import import_from

    written = import_from(from_, source, out)
    _show_files(written, as_json=as_json)


def _import_marks(project: Path, tool: str, source: Path, *, state: str, as_json: bool) -> None:
    from weakspot.cli.serve import require_web

    require_web()
    from weakspot.web.serving import import_marks

    found = import_marks(project, tool, source, state_url=state)
    lines = [
        f"{found.n_marked} marks; they count when they are applied: weakspot serve, page Marks.",
        f"{found.n_same} lines give the label that is there, {found.n_unknown} are about images or classes that are not, "
        f"{found.n_unseen} about images that nobody may look at.",
    ]
    show(found, lines, as_json=as_json)


def export(
    static: Path | None = typer.Option(
        None, "--static", help="Folder to write the read-only pages to; it is made."
    ),
    to: str = typer.Option(
        "",
        "--to",
        help="Another tool, with --out: cleanlab, coco, cvat, fiftyone, huggingface, label-studio, mlflow, spotlight or wandb.",
    ),
    out: Path | None = typer.Option(
        None, "--out", help="Folder for the files of the other tool; it is made."
    ),
    marks: bool = typer.Option(
        False,
        "--marks",
        help="With --to: only images that people marked; to csv, label-studio, cvat or cleanlab.",
    ),
    state: str = StateOption,
    project: Path = ProjectOption,
    run: str = typer.Option("", "--run", help="The run that is shown; the newest by default."),
    copy_images: bool = typer.Option(
        False, "--copy-images", help="With --to: copy images instead of pointing to them."
    ),
    most_samples: int = typer.Option(
        4000, "--most-samples", min=0, help="Images of so many samples at most."
    ),
    most_megabytes: float = typer.Option(
        60.0, "--most-megabytes", min=1.0, help="Size of data and images together."
    ),
    force: bool = typer.Option(False, "--force", help="Replace an earlier export in this folder."),
    as_json: bool = JsonOption,
) -> None:
    """Write a project for another tool (--to), or the browser's pages as files: open index.html, no server is needed (--static)."""
    if static is not None and not to and out is None:
        from weakspot.cli import terminal
        from weakspot.cli.serve import require_web

        require_web()
        from weakspot.web.static import ExportRequest, export_static

        request = ExportRequest(
            project=project,
            folder=static,
            run_id=run or None,
            most_samples=most_samples,
            most_megabytes=most_megabytes,
            is_forced=force,
        )
        summary = export_static(request, say=terminal.remark)
        size = f"{summary.n_bytes / 1e6:.1f} MB, {summary.n_images:,} images"
        show(summary, (*summary.notes, f"Pages ({size}): {summary.index}"), as_json=as_json)
    elif static is not None or not to or out is None:
        raise _unclear(static=static, to=to, out=out)
    elif marks:
        from weakspot.cli.serve import require_web

        require_web()
        from weakspot.web.serving import export_marks

        _show_files(export_marks(project, to, out, state_url=state), as_json=as_json)
    else:
        from weakspot.project.project import Project
        from weakspot.tools.exchange import export_to

        written = export_to(
            Project.open(project), to, out, run_id=run or None, copies_images=copy_images
        )
        _show_files(written, as_json=as_json)


def _unclear(*, static: Path | None, to: str, out: Path | None) -> ConfigError:
    from weakspot.tools.exchange import EXPORTS

    given = {"--static": static, "--to": to, "--out": out}
    named = " ".join(f"{option} {value}" for option, value in given.items() if value)
    return ConfigError(
        "It is not clear what to export.",
        given=named or None,
        fix=f"Give --static FOLDER for the pages, or --to NAME --out FOLDER for another tool: {', '.join(EXPORTS)}.",
    )


def _show_files(written: "Written", *, as_json: bool) -> None:
    files = [str(path) for path in written.files]
    shown = {"files": files, "sentence": written.sentence}
    show(shown, [*files, written.sentence], as_json=as_json)
