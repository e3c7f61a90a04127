"""The command `counterfactual`: the same pictures with one thing changed."""

from pathlib import Path

import typer

from weakspot.cli.generators import GeneratorOption, show_cost
from weakspot.cli.running import EngineOption, JsonOption, ProjectOption

FolderOption = typer.Option(None, "--to", help="Folder for the page, the contact sheet and the record; default: in the project.")


def counterfactual(
    captions: list[str] = typer.Argument(..., help='What is changed: "on grass" "green" "it is dark." or a whole prompt.'),
    class_name: str = typer.Option(..., "--class", help="What the pictures show."),
    project: Path = ProjectOption,
    number: int = typer.Option(40, "--number", "-n", min=1, help="Pictures for every caption."),
    generator: str = GeneratorOption,
    engine: str = EngineOption,
    to: Path | None = FolderOption,
    as_json: bool = JsonOption,
) -> None:
    """Change one thing in pictures of a class, and say how much more often the classifier then fails."""
    from weakspot.app.counterfactual_page import explanation, sentence, write_counterfactuals
    from weakspot.app.counterfactuals import CounterfactualRequest
    from weakspot.cli import terminal
    from weakspot.cli.generators import opened_with

    with terminal.showing_progress() as progress:
        opened = opened_with(project, generator, engine, progress)
        request = CounterfactualRequest(class_name=class_name, captions=tuple(captions), n_each=number)
        show_cost(opened, number * (len(captions) + 1))
        result = opened.counterfactual(request)
        files = write_counterfactuals(result, to or opened.folder / "counterfactuals" / class_name)
    if as_json:
        terminal.print_json(result.series.model_dump(mode="json"))
        return
    told = [*explanation(result.series), *(f"  {sentence(rate)}" for rate in result.series.rates), *result.series.notes]
    terminal.say("\n".join(told))
    terminal.say(f"Page with the pictures: {files[0]}")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(counterfactual)
