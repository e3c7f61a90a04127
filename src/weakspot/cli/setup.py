"""Commands around the loop: init, doctor, demo."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weakspot.cli.options import JsonOption, PortOption, VerboseOption

if TYPE_CHECKING:
    from weakspot.core.run import PreflightCheck
    from weakspot.project.doctor import DoctorFinding

STYLES = {"ok": "green", "missing": "yellow", "broken": "red"}


def init(
    folder: Path = typer.Argument(Path(), help="Project folder to make."),
    data: str = typer.Option(
        "", "--data", help="Folder, manifest, Hugging Face folder or name, or tar pattern."
    ),
    classifier: str = typer.Option(
        "",
        "--classifier",
        help="Model file, transformers:NAME, timm:NAME, http address or package.module:name; none: predictions are given.",
    ),
    force: bool = typer.Option(False, "--force", help="Overwrite an existing weakspot.toml."),
) -> None:
    """Write a commented weakspot.toml."""
    from weakspot.cli import terminal
    from weakspot.project.project import Project

    path = Project.create(
        folder,
        data=data,
        classifier=classifier,
        overwrite=force,
    ).settings_path
    terminal.say(f"Wrote {path}. Look it over, then: weakspot run --project {folder}")


def doctor(
    project: Path | None = typer.Option(
        None, "--project", "-p", help="Also look at this project: do its data and classifier fit?"
    ),
    offline: bool = typer.Option(False, "--offline", help="Make no network check."),
    verbose: bool = typer.Option(
        False, "--verbose", "-v", help="Show also what is in order, and every registered part."
    ),
    as_json: bool = JsonOption,
) -> None:
    """Say first whether all is well, then what is not: with this machine and, if given, with a project."""
    from weakspot.cli import terminal
    from weakspot.core.registry import ROLES, registered
    from weakspot.project.doctor import (
        examine_machine,
        examine_project,
        is_in_order,
        verdict_sentence,
    )

    findings = examine_machine(folder=project, ask_network=not offline)
    checks, failed = ((), ()) if project is None else examine_project(project)
    findings = (*findings, *failed)
    verdict = verdict_sentence(findings, checks)
    parts = {role: list(registered(role)) for role in ROLES}
    if as_json:
        shown = [dataclasses.asdict(finding) for finding in findings]
        told = [check.model_dump(mode="json") for check in checks]
        terminal.print_json(
            {"verdict": verdict, "checks": told, "findings": shown, "registered": parts}
        )
    else:
        terminal.say(verdict)
        _print_checks(checks, is_verbose=verbose)
        _print_findings(findings, is_verbose=verbose)
        for role, names in parts.items() if verbose else ():
            terminal.say(f"{role.replace('_', ' ')}: {', '.join(names) or 'none'}")
    if not is_in_order(findings, checks):
        raise typer.Exit(1)


def _print_checks(checks: "tuple[PreflightCheck, ...]", *, is_verbose: bool) -> None:
    from weakspot.cli import terminal
    from weakspot.core.run import CheckState

    for check in checks:
        if check.state is CheckState.OK and not is_verbose:
            continue
        terminal.say(f"  {check.state.value:8} {check.check}: {check.sentence}")
        for line in filter(None, (check.fix, check.settings_line)):
            terminal.say(f"{'':11}{line}")


def _print_findings(findings: "tuple[DoctorFinding, ...]", *, is_verbose: bool) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from weakspot.cli import terminal

    shown = [
        finding
        for finding in findings
        if is_verbose or (finding.state != "ok" and not finding.is_optional)
    ]
    table = Table(box=None, pad_edge=False)
    for heading in ("what", "state", "found", "to do"):
        table.add_column(heading, overflow="fold")
    for finding in shown:
        optional = " (optional)" if finding.is_optional and finding.state != "ok" else ""
        state = f"[{STYLES[finding.state]}]{finding.state}[/]{optional}"
        table.add_row(finding.area, state, escape(finding.found), escape(finding.fix))
    if shown:
        Console(highlight=False).print(table)
    absent = [finding.area for finding in findings if finding.state != "ok" and finding.is_optional]
    if absent and not is_verbose:
        terminal.say(f"  Optional and not there: {', '.join(absent)}; -v says how to get it.")


def demo(
    folder: Path = typer.Option(
        Path("weakspot-demo"), "--folder", help="Where the demo's project is made."
    ),
    as_json: bool = JsonOption,
    verbose: bool = VerboseOption,
    serve: bool = typer.Option(
        False, "--serve", help="Show it in the browser afterwards; at once if it was run before."
    ),
    port: int = PortOption,
    no_browser: bool = typer.Option(
        False, "--no-browser", help="With --serve: do not open a browser."
    ),
) -> None:
    """Run the whole loop on real photographs: a fruit classifier that hardly ever saw one kind of apple."""
    from weakspot.cli.serve import require_web, start_server
    from weakspot.project.demo import is_finished_demo

    if serve:
        require_web()
    if not (serve and is_finished_demo(folder)):
        _run_demo(folder, as_json=as_json, verbose=verbose)
    if serve:
        start_server(folder, port=port, no_browser=no_browser)


def _run_demo(folder: Path, *, as_json: bool, verbose: bool) -> None:
    from weakspot.cli import results, terminal
    from weakspot.project.demo import run_demo
    from weakspot.project.warm_up import begin_compiling

    with terminal.showing_progress() as progress:
        begin_compiling(progress)
        result = run_demo(folder, progress=progress)
    if as_json or verbose:
        text, end = results.whole_run(result.record), f"Report: {result.report}"
        terminal.show(result.record, (text, result.truth_sentence, end), as_json=as_json)
    else:
        results.show_run(result.record, folder, report=result.report)
        terminal.say(f"\n{result.truth_sentence}")
