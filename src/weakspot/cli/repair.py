"""The command `repair`: retrain, measure, compare, export."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weakspot.cli.options import EngineOption, JsonOption, ProjectOption, RunOption

if TYPE_CHECKING:
    from weakspot.pipeline.settings import Settings
    from weakspot.repair.stage import RepairRequest

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
    from weakspot.cli import terminal
    from weakspot.cli.repair_text import repair_lines, what_to_do
    from weakspot.project.project import Project

    with terminal.showing_progress() as progress:
        settings = repair_settings(
            project, method=method, budget=budget, synthetic=synthetic, engine=engine
        )
        opened = Project(project, settings, progress=progress)
        request = _request(slices, compare=compare, labels=labels, plan=plan, write_to=write_to)
        asked = replace(
            request,
            gain=None if gain is None else gain / 100,
            is_exploratory=exploratory,
        )
        record = opened.repair(run_id or None, asked)
        files = opened.report(record.run_id) if compare else ()
        folder = opened.store.runs.run_folder(record.run_id).resolve()
    lines = [repair_lines(record), *(f"Report with the plot: {path}" for path in files[:1])]
    if any(result.needs for result in record.repairs):
        lines.append(f"The run's folder, in which relative files are: {folder}")
    lines += what_to_do(record)
    terminal.show(record, lines, as_json=as_json)
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
    from weakspot.pipeline.changed_settings import with_engine, with_repair
    from weakspot.pipeline.settings_file import load_settings

    place = "" if synthetic is None else str(synthetic.resolve())
    return with_engine(
        with_repair(load_settings(project), method=method, budget=budget, synthetic=place), engine
    )


def _request(
    slices: list[str],
    *,
    compare: bool,
    labels: Path | None,
    plan: Path | None,
    write_to: Path | None,
) -> "RepairRequest":
    from weakspot.repair.export import read_plan
    from weakspot.repair.stage import RepairRequest

    return RepairRequest(
        slice_ids=tuple(slices),
        is_comparison=compare,
        labels=labels,
        plan=None if plan is None else read_plan(plan),
        write_to=write_to,
    )
