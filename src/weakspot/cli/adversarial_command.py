"""The command `adversarial`: a set of generated pictures that a classifier gets wrong."""

from pathlib import Path

import typer

from weakspot.cli.generators import GeneratorOption
from weakspot.cli.running import EngineOption, JsonOption, ProjectOption


def adversarial(
    to: Path = typer.Option(..., "--to", help="Folder for the set: a sub-folder a class, a table, a record and a page."),
    project: Path = ProjectOption,
    images: Path | None = typer.Option(
        None, "--images", help="Labelled pictures to caption (folder or table); default: the project's own failures."
    ),
    captions: Path | None = typer.Option(None, "--captions", help="Table of captions with the columns label and caption."),
    most_per_caption: int = typer.Option(100, "--most-per-caption", min=1, help="Most pictures that are drawn of one caption."),
    keep: int = typer.Option(10, "--keep", min=1, help="Most misclassified pictures that are kept of one caption."),
    most_captions: int = typer.Option(200, "--most-captions", min=1, help="Most captions, chosen at random."),
    baseline: int = typer.Option(48, "--baseline", min=0, help="Pictures of each class's baseline prompt, to compare with."),
    models: list[Path] = typer.Option(
        [], "--models", help="Further project folders whose classifiers the set is put to; repeatable."
    ),
    beside: list[Path] = typer.Option([], "--beside", help="Further sets of pictures to compare with; repeatable."),
    inception: str = typer.Option("", "--inception", help="Inception network for FID and KID: file, folder or timm name."),
    generator: str = GeneratorOption,
    engine: str = EngineOption,
    as_json: bool = JsonOption,
) -> None:
    """Draw pictures from captions of hard ones, keep those that the classifier gets wrong, and measure them."""
    from weakspot.app.adversarial.making_for_project import make_for_project
    from weakspot.app.adversarial.page import write_set_page
    from weakspot.app.adversarial.records import AdversarialRequest
    from weakspot.cli import terminal
    from weakspot.cli.adversarial_table import adversarial_lines
    from weakspot.search.adversarial import AdversarialEffort

    request = AdversarialRequest(
        to=to,
        images=images,
        captions=captions,
        effort=AdversarialEffort(most_per_caption=most_per_caption, keep=keep),
        most_captions=most_captions,
        n_baseline=baseline,
        beside=tuple(beside),
        inception=inception,
    )
    with terminal.showing_progress() as progress:
        made = make_for_project(project, request, models=models, generator=generator, engine=engine, progress=progress)
        files = write_set_page(made, to)
    if as_json:
        terminal.print_json(made.record.model_dump(mode="json"))
        return
    for line in adversarial_lines(made.record):
        terminal.say(line)
    terminal.say(f"Page: {files[0]}")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(adversarial)
