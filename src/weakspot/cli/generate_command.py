"""The command `generate`: pictures of confirmed slices, or of a person's own captions, to repair with."""

from pathlib import Path
from typing import Literal

import typer

from weakspot.cli.generators import GeneratorOption, opened_with
from weakspot.cli.running import EngineOption, JsonOption, ProjectOption, RunOption


def generate(
    captions: list[str] = typer.Argument(
        None, help='What to show: "on grass" "green" or whole prompts; default: the confirmed slices.'
    ),
    class_name: str = typer.Option("", "--class", help="The class of the captions."),
    to: Path = typer.Option(..., "--to", help="Folder for the pictures, one sub-folder a class, and their table metadata.csv."),
    number: int = typer.Option(20, "--number", "-n", min=1, help="Pictures for every prompt."),
    purpose: Literal["train", "measure"] = typer.Option(
        "train", "--for", help="train: composed from samples to train on; measure: from samples that are held out."
    ),
    project: Path = ProjectOption,
    run_id: str = RunOption,
    generator: str = GeneratorOption,
    engine: str = EngineOption,
    as_json: bool = JsonOption,
) -> None:
    """Let the generator draw pictures of what the classifier fails on; `repair --synthetic FOLDER` trains on them."""
    from weakspot.app.generating import GenerateRequest, generate_pictures
    from weakspot.cli import terminal

    request = GenerateRequest(class_name=class_name, captions=tuple(captions or ()), n_each=number, purpose=purpose)
    with terminal.showing_progress() as progress:
        made = generate_pictures(opened_with(project, generator, engine, progress), to, request, run_id=run_id or None)
    if as_json:
        terminal.print_json(made.model_dump(mode="json"))
        return
    terminal.say("\n".join(made.lines()))


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(generate)
