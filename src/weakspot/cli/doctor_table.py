"""What `weakspot doctor` shows."""

import dataclasses
from pathlib import Path

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from weakspot.app.doctor import DoctorFinding, examine_machine
from weakspot.cli import terminal
from weakspot.core.registry import ROLES, registered

STYLES = {"ok": "green", "missing": "yellow", "broken": "red"}


def show(*, project: Path | None, offline: bool, as_json: bool) -> None:
    """Examine the machine and print the findings; exit with 1 if something that is needed is missing or broken."""
    findings = examine_machine(folder=project, ask_network=not offline)
    if as_json:
        parts = {role: list(registered(role)) for role in ROLES}
        terminal.print_json({"findings": [dataclasses.asdict(finding) for finding in findings], "registered": parts})
    else:
        _print_table(findings)
    if any(finding.state != "ok" and not finding.is_optional for finding in findings):
        raise typer.Exit(1)


def _print_table(findings: tuple[DoctorFinding, ...]) -> None:
    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False)
    for heading in ("what", "state", "found", "to do"):
        table.add_column(heading, overflow="fold")
    for finding in findings:
        optional = " (optional)" if finding.is_optional and finding.state != "ok" else ""
        table.add_row(
            finding.area, f"[{STYLES[finding.state]}]{finding.state}[/]{optional}", escape(finding.found), escape(finding.fix)
        )
    console.print(table)
    console.print()
    for role in ROLES:
        console.print(f"{role.replace('_', ' ')}: {', '.join(registered(role)) or 'none'}", markup=False)
