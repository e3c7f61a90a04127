"""Commands of the loop: ingest, embed, discover, verify, repair, report, run."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weakspot.cli import terminal
from weakspot.cli.options import (
    EngineOption,
    JsonOption,
    ProjectOption,
    RunOption,
    VerboseOption,
    opened,
)
from weakspot.core.bounds import SliceOrder

if TYPE_CHECKING:
    from weakspot.core.run import RunRecord
    from weakspot.run.settings import Settings

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
    from weakspot.cli.results import ingest_lines

    with opened(project, compiles=True, engine=engine) as examined:
        summary = examined.ingest()
    terminal.show(summary, ingest_lines(summary), as_json=as_json)


def embed(
    project: Path = ProjectOption, engine: str = EngineOption, as_json: bool = JsonOption
) -> None:
    """Compute embeddings, and predictions of the classifier; only new samples cost time."""
    from weakspot.cli.results import embed_lines

    with opened(project, compiles=True, engine=engine) as examined:
        summary = examined.embed()
    terminal.show(summary, embed_lines(summary), as_json=as_json)


def discover(
    project: Path = ProjectOption,
    methods: list[str] = MethodsOption,
    engine: str = EngineOption,
    as_json: bool = JsonOption,
) -> None:
    """Look for failure slices and name them: on the discovery half, so nothing is confirmed yet."""
    from weakspot.cli.results import candidates

    with opened(project, compiles=True, methods=methods, engine=engine) as examined:
        record = examined.discover()
    terminal.show(record, candidates(record), as_json=as_json)


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
    from weakspot.cli import results

    with opened(project, engine=engine) as examined:
        record = examined.verify(run_id or None)
        left = examined.asked()
        chosen = order or examined.settings.report.order
    if as_json or verbose or has_all:
        shown = results.findings(record, order=chosen, has_all=has_all)
        terminal.show(record, (shown, *left), as_json=as_json)
    else:
        results.show_run(record, project, order=chosen)
    _exit_on_finding(record, fail_above)


def report(
    project: Path = ProjectOption, run_id: str = RunOption, as_json: bool = JsonOption
) -> None:
    """Write the report of a run: one HTML file that needs no network, with Markdown and JSON beside it."""
    with opened(project) as examined:
        files = examined.report(run_id or None)
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
    from weakspot.cli import results
    from weakspot.run.reporting import place_of_report
    from weakspot.run.stage_clock import StageClock, stage_lines, write_profile

    clock = StageClock()
    with opened(project, compiles=True, methods=methods, engine=engine) as examined:
        record = examined.run(writes_report=False)
        with clock.stage("report"):
            examined.report(record.run_id)
        written = place_of_report(examined.store, record.run_id)
        left = examined.asked()
        chosen = order or examined.settings.report.order
    if as_json or verbose or has_all:
        text = results.whole_run(record, order=chosen, has_all=has_all)
        spent = stage_lines((*record.stages, *clock.stages))
        terminal.show(record, (text, *left, *spent, f"Report: {written}"), as_json=as_json)
    else:
        results.show_run(record, project, report=written, order=chosen)
    if has_profile:
        drawn = write_profile(examined.store, record.run_id, (*record.stages, *clock.stages))
        terminal.remark(f"Profile: {drawn}")
    _exit_on_finding(record, fail_above)


def _exit_on_finding(record: "RunRecord", fail_above: float | None) -> None:
    if fail_above is not None and any(
        evidence.headline_gap > fail_above for _, evidence in record.published()
    ):
        raise typer.Exit(1)


MethodOption = typer.Option("", "--method", help="Strategy to use instead of the configured one.")
SlicesOption = typer.Option(
    [], "--slice", help="Repair only this confirmed slice (id or its beginning); repeatable."
)
CompareOption = typer.Option(
    False, "--compare", help="Run every strategy that the samples allow, and show one table."
)
BudgetOption = typer.Option(
    None, "--budget", min=0, help="Samples that may be taken from the pool."
)
SyntheticOption = typer.Option(
    None, "--synthetic", help="Folder of generated images, one sub-folder per class."
)
LabelsOption = typer.Option(
    None, "--labels", help="The list of pool samples to label, with labels filled in."
)
PlanOption = typer.Option(
    None, "--plan", help="plan.json of an earlier repair, to be carried out again here."
)
WriteOption = typer.Option(
    None, "--write-to", help="Folder for the repaired classifier, its plan and training weights."
)
GainOption = typer.Option(
    None,
    "--gain",
    min=0.1,
    max=100.0,
    help="Where rows are to be collected: points by which slices shall fail less; otherwise half and all of their gap.",
)


NOTHING_WRITTEN = 1


ExploratoryOption = typer.Option(
    False,
    "--exploratory",
    help="With --slice: also slices that were not confirmed, such as your own phrase; the repair is marked so.",
)


def repair(
    project: Path = ProjectOption,
    run_id: str = RunOption,
    method: str = MethodOption,
    slices: list[str] = SlicesOption,
    compare: bool = CompareOption,
    budget: int | None = BudgetOption,
    synthetic: Path | None = SyntheticOption,
    labels: Path | None = LabelsOption,
    exploratory: bool = ExploratoryOption,
    plan: Path | None = PlanOption,
    write_to: Path | None = WriteOption,
    gain: float | None = GainOption,
    engine: str = EngineOption,
    as_json: bool = JsonOption,
) -> None:
    """Retrain the last layer for confirmed slices, beside baselines; where it is not known, list rows to collect and training weights."""
    from weakspot.cli.results import repair_lines, what_to_do
    from weakspot.project.project import Project
    from weakspot.repair.export import read_plan
    from weakspot.repair.stage import RepairRequest

    with terminal.showing_progress() as progress:
        settings = repair_settings(
            project, method=method, budget=budget, synthetic=synthetic, engine=engine
        )
        request = RepairRequest(
            slice_ids=tuple(slices),
            is_comparison=compare,
            labels=labels,
            plan=None if plan is None else read_plan(plan),
            write_to=write_to,
            gain=None if gain is None else gain / 100,
            is_exploratory=exploratory,
        )
        repaired = Project(project, settings, progress=progress)
        record = repaired.repair(run_id or None, request)
        files = repaired.report(record.run_id) if compare else ()
        folder = repaired.store.runs.run_folder(record.run_id).resolve()
    lines = [repair_lines(record), *(f"Report with the plot: {path}" for path in files[:1])]
    if any(result.needs for result in record.repairs):
        lines.append(f"The run's folder, in which relative files are: {folder}")
    terminal.show(record, [*lines, *what_to_do(record)], as_json=as_json)
    if not record.repairs:
        raise typer.Exit(NOTHING_WRITTEN)


def repair_settings(
    project: Path,
    *,
    method: str = "",
    budget: int | None = None,
    synthetic: Path | None = None,
    engine: str = "",
) -> "Settings":
    """Return the settings of a project with what the command line says of a repair."""
    from weakspot.run.settings import load_settings, with_engine, with_repair

    place = "" if synthetic is None else str(synthetic.resolve())
    return with_engine(
        with_repair(load_settings(project), method=method, budget=budget, synthetic=place), engine
    )
