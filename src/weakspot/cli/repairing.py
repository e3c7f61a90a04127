"""The command `collective`: one repair set for a family of classifiers."""

from pathlib import Path

import typer


def collective(
    projects: list[Path] = typer.Argument(..., help="Two or more project folders on the same pictures, one a classifier."),
    kind: int = typer.Option(1, "--type", min=1, max=2, help="1: one set from the failures of all; 2: from those of one."),
    source: str = typer.Option("", "--from", help="With --type 2: the project whose failures are used; the first by default."),
    method: str = typer.Option("slice-balanced", "--method", help="Strategy that chooses and weighs the samples."),
    output: Path | None = typer.Option(
        None, "--output", "--out", help="Folder for the page, the record, the set and the repaired layers."
    ),
    as_json: bool = typer.Option(False, "--json", help="Write the result as JSON to the output stream."),
) -> None:
    """Repair a family of classifiers with one set, beside each one's own repair and a random set of the same kind."""
    from weakspot.app.collective import FamilyRequest, repair_family
    from weakspot.app.collective_page import write_family
    from weakspot.cli import terminal
    from weakspot.cli.collective_table import collective_lines

    request = FamilyRequest(kind=1 if kind == 1 else 2, source=source, method=method)
    with terminal.showing_progress() as progress:
        result = repair_family(projects, request, progress=progress)
    files = write_family(result, output) if output is not None else ()
    if as_json:
        terminal.print_json(result.repair.model_dump(mode="json"))
        return
    for line in collective_lines(result.repair):
        terminal.say(line)
    if files:
        terminal.say(f"Page: {files[0]}")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(collective)
