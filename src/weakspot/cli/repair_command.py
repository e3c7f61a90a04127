"""The command `repair`: retrain, measure, compare, hand back."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weakspot.cli.running import EngineOption, JsonOption, ProjectOption, RunOption

if TYPE_CHECKING:
    from weakspot.app.config import Settings
    from weakspot.app.repairing import RepairRequest

MethodOption = typer.Option("", "--method", help="Strategy to use instead of the configured one.")
SlicesOption = typer.Option([], "--slice", help="Repair only this confirmed slice (id or its beginning); repeatable.")
CompareOption = typer.Option(False, "--compare", help="Run every strategy that the samples allow, and show one table.")
BudgetOption = typer.Option(None, "--budget", min=0, help="Samples that may be taken from the pool.")
SyntheticOption = typer.Option(None, "--synthetic", help="Folder of generated pictures, one sub-folder a class.")
LabelsOption = typer.Option(None, "--labels", help="The list of pool samples to label, with labels filled in.")
PlanOption = typer.Option(None, "--plan", help="plan.json of an earlier repair, to be carried out again here.")
WriteOption = typer.Option(None, "--write-to", help="Folder for the repaired classifier, its plan and training weights.")
SweepOption = typer.Option(None, "--sweep", help="Folder for the trade-off of a synthetic repair over its weight and names.")


def repair(
    project: Path = ProjectOption,
    run_id: str = RunOption,
    method: str = MethodOption,
    slices: list[str] = SlicesOption,
    compare: bool = CompareOption,
    budget: int | None = BudgetOption,
    synthetic: Path | None = SyntheticOption,
    labels: Path | None = LabelsOption,
    plan: Path | None = PlanOption,
    write_to: Path | None = WriteOption,
    sweep: Path | None = SweepOption,
    engine: str = EngineOption,
    as_json: bool = JsonOption,
) -> None:
    """Retrain the last layer for the confirmed slices of a run, or as a plan says, beside its baselines."""
    from weakspot.app.project import Project
    from weakspot.cli import terminal
    from weakspot.cli.repair_table import repair_lines

    with terminal.showing_progress() as progress:
        settings = _settings(project, method=method, budget=budget, synthetic=synthetic, engine=engine)
        opened = Project(project, settings, progress=progress)
        if sweep is not None:
            files = opened.sweep(sweep, run_id or None)
            terminal.print_json([str(path) for path in files]) if as_json else terminal.say("\n".join(map(str, files)))
            return
        request = _request(slices, compare=compare, labels=labels, plan=plan, write_to=write_to)
        record = opened.repair(run_id or None, request)
        files = opened.report(record.run_id) if compare else ()
    if as_json:
        terminal.print_json(record.model_dump(mode="json"))
        return
    terminal.say(repair_lines(record))
    if files:
        terminal.say(f"Report with the plot: {files[0]}")


def _settings(project: Path, *, method: str, budget: int | None, synthetic: Path | None, engine: str) -> "Settings":
    from weakspot.app.config import load_settings, with_engine, with_repair

    place = "" if synthetic is None else str(synthetic.resolve())
    return with_engine(with_repair(load_settings(project), method=method, budget=budget, synthetic=place), engine)


def _request(slices: list[str], *, compare: bool, labels: Path | None, plan: Path | None, write_to: Path | None) -> "RepairRequest":
    from weakspot.app.handing_back import read_plan
    from weakspot.app.repairing import RepairRequest

    return RepairRequest(
        slice_ids=tuple(slices),
        is_comparison=compare,
        labels=labels,
        plan=None if plan is None else read_plan(plan),
        write_to=write_to,
    )


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(repair)
