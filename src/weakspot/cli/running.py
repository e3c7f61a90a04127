"""Commands of the loop: ingest, embed, discover, verify, report, run."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from weakspot.core.run import RunRecord

ProjectOption = typer.Option(Path(), "--project", "-p", help="Project folder; it holds weakspot.toml.")
JsonOption = typer.Option(False, "--json", help="Write the result as JSON to the output stream.")
RunOption = typer.Option("", "--run", help="Run to continue; the newest by default.")
EngineOption = typer.Option(
    "", "--engine", help="Where heavy work runs, instead of the configured place: local, processes or ray. Same results."
)
MethodsOption = typer.Option(
    [], "--method", help="Discoverer to use instead of the configured ones; repeatable, `all` for all but the baselines."
)
FailAboveOption = typer.Option(
    None, "--fail-above", min=0.0, max=1.0, help="Exit with 1 if a confirmed slice has a gap above this (0 to 1)."
)


def ingest(project: Path = ProjectOption, engine: str = EngineOption, as_json: bool = JsonOption) -> None:
    """Read the samples: hash, examine, quarantine what is broken, assign splits."""
    from weakspot.app.project import Project
    from weakspot.cli import terminal, wording

    with terminal.showing_progress() as progress:
        summary = Project.open(project, engine=engine, progress=progress).ingest()
    if as_json:
        terminal.print_json(dataclasses.asdict(summary))
    else:
        terminal.say(wording.ingest_sentence(summary))


def embed(project: Path = ProjectOption, engine: str = EngineOption, as_json: bool = JsonOption) -> None:
    """Compute vectors of all pictures, and outcomes if a classifier is configured; only new samples cost time."""
    from weakspot.app.project import Project
    from weakspot.cli import terminal, wording

    with terminal.showing_progress() as progress:
        summary = Project.open(project, engine=engine, progress=progress).embed()
    if as_json:
        terminal.print_json(dataclasses.asdict(summary))
    else:
        terminal.say(wording.embed_sentence(summary))


def discover(
    project: Path = ProjectOption,
    methods: list[str] = MethodsOption,
    engine: str = EngineOption,
    as_json: bool = JsonOption,
) -> None:
    """Look for failure slices on the discovery half and give them names; nothing is confirmed yet."""
    from weakspot.app.project import Project
    from weakspot.cli import terminal, wording

    with terminal.showing_progress() as progress:
        record = Project.open(project, methods=methods, engine=engine, progress=progress).discover()
    terminal.print_json(record.model_dump(mode="json")) if as_json else terminal.say(wording.candidates(record))


def verify(
    project: Path = ProjectOption,
    run_id: str = RunOption,
    engine: str = EngineOption,
    as_json: bool = JsonOption,
    fail_above: float | None = FailAboveOption,
) -> None:
    """Measure the slices of a run on the confirmation half and say which are real."""
    from weakspot.app.project import Project
    from weakspot.cli import terminal, wording

    with terminal.showing_progress() as progress:
        record = Project.open(project, engine=engine, progress=progress).verify(run_id or None)
    terminal.print_json(record.model_dump(mode="json")) if as_json else terminal.say(wording.findings(record))
    _exit_on_finding(record, fail_above)


def report(project: Path = ProjectOption, run_id: str = RunOption, as_json: bool = JsonOption) -> None:
    """Write the report of a run: one HTML file that needs no network, with Markdown and JSON beside it."""
    from weakspot.app.project import Project
    from weakspot.cli import terminal

    with terminal.showing_progress() as progress:
        files = Project.open(project, progress=progress).report(run_id or None)
    if as_json:
        terminal.print_json({path.suffix.lstrip("."): str(path) for path in files})
    else:
        terminal.say("\n".join(str(path) for path in files))


def run(
    project: Path = ProjectOption,
    methods: list[str] = MethodsOption,
    engine: str = EngineOption,
    as_json: bool = JsonOption,
    fail_above: float | None = FailAboveOption,
) -> None:
    """Do the whole loop; finished work of earlier runs is taken, not repeated."""
    from weakspot.app.project import Project
    from weakspot.cli import terminal, wording

    with terminal.showing_progress() as progress:
        opened = Project.open(project, methods=methods, engine=engine, progress=progress)
        record = opened.run()
        files = opened.report(record.run_id)
    if as_json:
        terminal.print_json(record.model_dump(mode="json"))
    else:
        terminal.say(wording.whole_run(record))
        terminal.say(f"Report: {files[0]}")
    _exit_on_finding(record, fail_above)


def _exit_on_finding(record: "RunRecord", fail_above: float | None) -> None:
    if fail_above is not None and any(evidence.gap > fail_above for _, evidence in record.published()):
        raise typer.Exit(1)


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    for command in (ingest, embed, discover, verify, report, run):
        app.command()(command)
