"""Commands around the loop: init, doctor, demo."""

from pathlib import Path

import typer


def init(
    folder: Path = typer.Argument(Path(), help="Project folder to make."),
    data: str = typer.Option("", "--data", help="Folder, manifest, Hugging Face folder or name, or tar pattern."),
    classifier: str = typer.Option(
        "",
        "--classifier",
        help="Model file, transformers:NAME, timm:NAME, http address or package.module:name; none: predictions are given.",
    ),
    force: bool = typer.Option(False, "--force", help="Overwrite an existing weakspot.toml."),
) -> None:
    """Write a commented weakspot.toml."""
    from weakspot.app.project import Project
    from weakspot.cli import terminal

    path = Project.create(folder, data=data, classifier=classifier, overwrite=force).settings_path
    terminal.say(f"Wrote {path}. Look it over, then: weakspot run --project {folder}")


def doctor(
    project: Path | None = typer.Option(None, "--project", "-p", help="Also look at this project folder."),
    offline: bool = typer.Option(False, "--offline", help="Make no network check."),
    as_json: bool = typer.Option(False, "--json", help="Write the findings as JSON to the output stream."),
) -> None:
    """Say what is installed, reachable and cached, and how to mend what is not."""
    from weakspot.cli import doctor_table

    doctor_table.show(project=project, offline=offline, as_json=as_json)


def demo(
    folder: Path = typer.Option(Path("weakspot-demo"), "--folder", help="Where the demo's project is made."),
    as_json: bool = typer.Option(False, "--json", help="Write the run record as JSON to the output stream."),
    serve: bool = typer.Option(False, "--serve", help="Show it in the browser afterwards; at once if it was run before."),
    port: int = typer.Option(8765, "--port", min=0, max=65535, help="Port for --serve; 0 takes a free one."),
    no_browser: bool = typer.Option(False, "--no-browser", help="With --serve: do not open a browser."),
) -> None:
    """Run the whole loop on real photographs: a fruit classifier that hardly ever saw one kind of apple."""
    from weakspot.app.demo import is_finished_demo
    from weakspot.cli import serve_command

    if serve:
        serve_command.require_web()
    if not (serve and is_finished_demo(folder)):
        _run_demo(folder, as_json=as_json)
    if serve:
        serve_command.start(folder, port=port, no_browser=no_browser)


def _run_demo(folder: Path, *, as_json: bool) -> None:
    from weakspot.app.demo import run_demo
    from weakspot.cli import terminal, wording

    with terminal.showing_progress() as progress:
        outcome = run_demo(folder, progress=progress)
    if as_json:
        terminal.print_json(outcome.record.model_dump(mode="json"))
        return
    terminal.say(wording.whole_run(outcome.record))
    terminal.say(outcome.truth_sentence)
    terminal.say(f"Report: {outcome.report}")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    for command in (init, doctor, demo):
        app.command()(command)
