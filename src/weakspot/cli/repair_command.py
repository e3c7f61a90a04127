"""The command `repair`: retrain, measure, compare, hand back."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weakspot.cli.running import JsonOption, ProjectOption, RunOption

if TYPE_CHECKING:
    from weakspot.app.project import Project
    from weakspot.app.repairing import RepairRequest
    from weakspot.core.run import StageProgress

NO_FILE = Path()
MethodOption = typer.Option("", "--method", help="Strategy to use instead of the configured one.")
SlicesOption = typer.Option([], "--slice", help="Repair only this confirmed slice (id or its beginning); repeatable.")
CompareOption = typer.Option(False, "--compare", help="Run every strategy that the samples allow, and show one table.")
BudgetOption = typer.Option(None, "--budget", min=0, help="Samples that may be taken from the pool.")
SyntheticOption = typer.Option(NO_FILE, "--synthetic", help="Folder of generated pictures, one sub-folder a class.")
LabelsOption = typer.Option(NO_FILE, "--labels", help="The list of pool samples to label, with labels filled in.")
PlanOption = typer.Option(NO_FILE, "--plan", help="plan.json of an earlier repair, to be carried out again here.")
WriteOption = typer.Option(NO_FILE, "--write-to", help="Folder for the repaired classifier, its plan and training weights.")
SweepOption = typer.Option(NO_FILE, "--sweep", help="Folder for the trade-off of a synthetic repair over its weight and names.")


def repair(
    project: Path = ProjectOption,
    run_id: str = RunOption,
    method: str = MethodOption,
    slices: list[str] = SlicesOption,
    compare: bool = CompareOption,
    budget: int | None = BudgetOption,
    synthetic: Path = SyntheticOption,
    labels: Path = LabelsOption,
    plan: Path = PlanOption,
    write_to: Path = WriteOption,
    sweep: Path = SweepOption,
    as_json: bool = JsonOption,
) -> None:
    """Retrain the last layer for the confirmed slices of a run, or as a plan says, beside its baselines."""
    from weakspot.cli import terminal
    from weakspot.cli.repair_table import repair_lines

    with terminal.showing_progress() as progress:
        opened = _opened(project, progress, method=method, budget=budget, synthetic=synthetic)
        if sweep != NO_FILE:
            files = opened.sweep(sweep, run_id or None)
            terminal.print_json([str(path) for path in files]) if as_json else terminal.say("\n".join(map(str, files)))
            return
        request = _request(slices, compare=compare, labels=labels, plan=plan, write_to=write_to)
        record = opened.repair(run_id or None, request)
    terminal.print_json(record.model_dump(mode="json")) if as_json else terminal.say(repair_lines(record))


def _opened(project: Path, progress: "StageProgress", *, method: str, budget: int | None, synthetic: Path) -> "Project":
    from weakspot.app.config import load_settings, with_repair
    from weakspot.app.project import Project

    place = "" if synthetic == NO_FILE else str(synthetic.resolve())
    settings = with_repair(load_settings(project), method=method, budget=budget, synthetic=place)
    return Project(project, settings, progress=progress)


def _request(slices: list[str], *, compare: bool, labels: Path, plan: Path, write_to: Path) -> "RepairRequest":
    from weakspot.app.handing_back import read_plan
    from weakspot.app.repairing import RepairRequest

    return RepairRequest(
        slice_ids=tuple(slices),
        is_comparison=compare,
        labels=None if labels == NO_FILE else labels,
        plan=None if plan == NO_FILE else read_plan(plan),
        write_to=None if write_to == NO_FILE else write_to,
    )


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(repair)
