"""Commands of the loop: ingest, embed, discover, verify, report, run."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weakspot.cli.options import (
    EngineOption,
    JsonOption,
    ProjectOption,
    RunOption,
    VerboseOption,
)
from weakspot.core.ordering import SliceOrder

if TYPE_CHECKING:
    from weakspot.core.run import RunRecord

MethodsOption = typer.Option(
    [],
    "--method",
    help="Discoverer to use instead of the configured ones; repeatable, `all` for all but the baselines.",
)
AllOption = typer.Option(
    False,
    "--all",
    help="Show everything (--verbose), and every confirmed slice, also those that others explain.",
)
OrderOption = typer.Option(
    None,
    "--order",
    help="Order slices by severity, coverage (share of all failures) or both, instead of as configured.",
)
ProfileOption = typer.Option(
    False,
    "--profile",
    help="Draw where the time went, stage by stage, into the run's folder, and say where that is.",
)
FailAboveOption = typer.Option(
    None,
    "--fail-above",
    min=0.0,
    max=1.0,
    help="Exit with 1 if a confirmed slice has a gap above this (0 to 1).",
)


def ingest(
    project: Path = ProjectOption, engine: str = EngineOption, as_json: bool = JsonOption
) -> None:
    """Read the samples: hash, examine, quarantine what is broken, assign splits."""
    from weakspot.cli import run_text, terminal
    from weakspot.project.project import Project
    from weakspot.project.warm_up import begin_compiling

    with terminal.showing_progress() as progress:
        begin_compiling(progress)
        summary = Project.open(project, engine=engine, progress=progress).ingest()
    terminal.show(summary, run_text.ingest_lines(summary), as_json=as_json)


def embed(
    project: Path = ProjectOption, engine: str = EngineOption, as_json: bool = JsonOption
) -> None:
    """Compute embeddings, and predictions of the classifier; only new samples cost time."""
    from weakspot.cli import run_text, terminal
    from weakspot.project.project import Project
    from weakspot.project.warm_up import begin_compiling

    with terminal.showing_progress() as progress:
        begin_compiling(progress)
        summary = Project.open(project, engine=engine, progress=progress).embed()
    terminal.show(summary, run_text.embed_lines(summary), as_json=as_json)


def discover(
    project: Path = ProjectOption,
    methods: list[str] = MethodsOption,
    engine: str = EngineOption,
    as_json: bool = JsonOption,
) -> None:
    """Look for failure slices and name them: on the discovery half, so nothing is confirmed yet."""
    from weakspot.cli import run_text, terminal
    from weakspot.project.project import Project
    from weakspot.project.warm_up import begin_compiling

    with terminal.showing_progress() as progress:
        begin_compiling(progress)
        record = Project.open(project, methods=methods, engine=engine, progress=progress).discover()
    terminal.show(record, run_text.candidates(record), as_json=as_json)


def verify(
    project: Path = ProjectOption,
    run_id: str = RunOption,
    engine: str = EngineOption,
    as_json: bool = JsonOption,
    fail_above: float | None = FailAboveOption,
    order: SliceOrder | None = OrderOption,
    has_all: bool = AllOption,
    verbose: bool = VerboseOption,
) -> None:
    """Say which slices are real: measure those of a run on the confirmation half."""
    from weakspot.cli import first_lines, run_text, terminal
    from weakspot.project.project import Project

    with terminal.showing_progress() as progress:
        opened = Project.open(project, engine=engine, progress=progress)
        record = opened.verify(run_id or None)
        left = opened.asked()
        chosen = order or opened.settings.report.order
    if as_json or verbose or has_all:
        shown = run_text.findings(record, order=chosen, has_all=has_all)
        terminal.show(record, (shown, *left), as_json=as_json)
    else:
        first_lines.show_run(record, project, order=chosen)
    _exit_on_finding(record, fail_above)


def report(
    project: Path = ProjectOption, run_id: str = RunOption, as_json: bool = JsonOption
) -> None:
    """Write the report of a run: one HTML file that needs no network, with Markdown and JSON beside it."""
    from weakspot.cli import terminal
    from weakspot.project.project import Project

    with terminal.showing_progress() as progress:
        files = Project.open(project, progress=progress).report(run_id or None)
    by_format = {path.suffix.lstrip("."): str(path) for path in files}
    terminal.show(by_format, map(str, files), as_json=as_json)


def run(
    project: Path = ProjectOption,
    methods: list[str] = MethodsOption,
    engine: str = EngineOption,
    as_json: bool = JsonOption,
    fail_above: float | None = FailAboveOption,
    order: SliceOrder | None = OrderOption,
    has_all: bool = AllOption,
    verbose: bool = VerboseOption,
    has_profile: bool = ProfileOption,
) -> None:
    """Do the whole loop; finished work of earlier runs is reused, not repeated."""
    from weakspot.cli import first_lines, run_text, terminal
    from weakspot.pipeline.profile import stage_lines, write_profile
    from weakspot.pipeline.reporting import place_of_report
    from weakspot.pipeline.stage_clock import StageClock
    from weakspot.project.project import Project
    from weakspot.project.warm_up import begin_compiling

    clock = StageClock()
    with terminal.showing_progress() as progress:
        begin_compiling(progress)
        opened = Project.open(project, methods=methods, engine=engine, progress=progress)
        record = opened.run(writes_report=False)
        with clock.stage("report"):
            opened.report(record.run_id)
        written = place_of_report(opened.store, record.run_id)
        left = opened.asked()
        chosen = order or opened.settings.report.order
    if as_json or verbose or has_all:
        text = run_text.whole_run(record, order=chosen, has_all=has_all)
        spent = stage_lines((*record.stages, *clock.stages))
        terminal.show(record, (text, *left, *spent, f"Report: {written}"), as_json=as_json)
    else:
        first_lines.show_run(record, project, report=written, order=chosen)
    if has_profile:
        drawn = write_profile(opened.store, record.run_id, (*record.stages, *clock.stages))
        terminal.remark(f"Profile: {drawn}")
    _exit_on_finding(record, fail_above)


def _exit_on_finding(record: "RunRecord", fail_above: float | None) -> None:
    if fail_above is not None and any(
        evidence.headline_gap > fail_above for _, evidence in record.published()
    ):
        raise typer.Exit(1)
