"""Research commands, `weakspot lab ...`: refine, adversarial and collective, and those of the package weakspot-lab."""

from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from weakspot.cli import terminal
from weakspot.cli.options import (
    EngineOption,
    FamilyArgument,
    GeneratorOption,
    JsonOption,
    OwnCommand,
    ProjectOption,
    SourceOption,
    TopicGroup,
    example_of,
    open_with_generator,
)

if TYPE_CHECKING:
    from weakspot.project.refine.projects import RefinedProject, RefinedProjects


LAB = "weakspot.lab"
OF_THE_LAB = ("align", "bench", "decode", "reproduce", "sweep")


class LabGroup(TopicGroup):
    """Adds the commands of weakspot-lab where that is installed, and says how to install it where it is not."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for entry in entry_points(group=LAB):
            self.commands.update(typer.main.get_group(entry.load()).commands)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is named; one of a package that is missing ends with exit code 2."""
        if args[0] in OF_THE_LAB and args[0] not in self.commands:
            typer.echo(
                f"weakspot lab {args[0]} needs weakspot-lab: pip install weakspot-lab", err=True
            )
            raise typer.Exit(2)
        return super().resolve_command(ctx, args)


def refine(
    projects: list[Path] = typer.Argument(
        None, help="Project folders; several on the same images are refined with one set."
    ),
    named: list[Path] = typer.Option(
        [], "--project", "-p", help="The same, as with other commands; repeatable."
    ),
    kinds: list[str] = typer.Option(
        [], "--kind", help="Kind of attribute: background, colour, ...; repeatable. Default: both."
    ),
    n_names: int = typer.Option(
        3, "--names", "-k", help="Values of a kind that are generated for a class."
    ),
    n_each: int = typer.Option(5, "--each", help="Images for every failure that shows a value."),
    most_each: int = typer.Option(
        100, "--most", help="Most images of one prompt; it has at least 60 if this allows."
    ),
    weight: float | None = typer.Option(
        None,
        "--weight",
        help="What images count beside training samples (lambda; 0.5 in the paper). Default: chosen.",
    ),
    beside: list[str] = typer.Option(
        [],
        "--beside",
        help="What stands beside it: random, predefined, directions, easy, cutmix, cutmix-pixels, plain; repeatable. "
        "Default: all but easy and cutmix-pixels.",
    ),
    predefined: list[str] = typer.Option(
        [],
        "--predefined",
        help='Your own values for the arm predefined: "background=in a cave,on a leaf"; repeatable.',
    ),
    kind: int | None = typer.Option(
        None,
        "--type",
        min=1,
        max=2,
        help="Several projects: values from the failures of all, or of one.",
    ),
    source: str = SourceOption,
    generator: str = GeneratorOption,
    engine: str = EngineOption,
    to: Path | None = typer.Option(
        None,
        "--to",
        help="Folder for page, contact sheet, record and last layer; default: in the project.",
    ),
    as_json: bool = JsonOption,
) -> None:
    """Retrain on generated images of what failures show: beside images of the mere class, fixed values and other baselines."""
    from weakspot.core.errors import ConfigError
    from weakspot.project.refine.projects import (
        family_lines,
        refine_project,
        refine_projects,
        refinement_lines,
        write_refined_family,
        write_refinement,
    )
    from weakspot.project.refine.training import BESIDE, KINDS, RefineRequest, predefined_values

    folders = [*(projects or ()), *named] or [Path()]
    request = RefineRequest(
        kinds=tuple(dict.fromkeys(kinds)) or KINDS,
        n_names=n_names,
        n_each=n_each,
        most_each=most_each,
        debug_weight=weight,
        arms=tuple(dict.fromkeys(beside)) or BESIDE,
        predefined=predefined_values(predefined),
    )
    if len(folders) == 1 and (kind is not None or source):
        raise ConfigError(
            "--type and --from are for several projects.",
            given=str(folders[0]),
            fix="Name more projects.",
        )
    made: RefinedProject | RefinedProjects
    with terminal.showing_progress() as progress:
        opened = [open_with_generator(folder, generator, engine, progress) for folder in folders]
        if len(folders) == 1:
            made = refine_project(opened[0], request, progress=progress)
            place = to or folders[0] / "refinements" / "-".join(request.kinds)
            files, lines = write_refinement(made, place), refinement_lines(made.refinement)
        else:
            name = Path(source).resolve().name if source else ""
            number: Literal[1, 2] = 1 if kind in (None, 1) else 2
            made = refine_projects(opened, request, kind=number, source=name, progress=progress)
            place = to or folders[0] / "refinements" / f"type-{number}"
            files, lines = write_refined_family(made, place), family_lines(made.refinement)
    page = f"Page with the images: {files[0]}"
    terminal.show(made.refinement, (*lines, page), as_json=as_json)


def adversarial(
    to: Path = typer.Option(
        ..., "--to", help="Folder for the set: a sub-folder per class, a table, a record, a page."
    ),
    project: Path = ProjectOption,
    images: Path | None = typer.Option(
        None,
        "--images",
        help="Labelled images to caption (folder or table); default: the project's own failures.",
    ),
    captions: Path | None = typer.Option(
        None, "--captions", help="Table of captions with the columns label and caption."
    ),
    most_per_caption: int = typer.Option(
        100, "--most-per-caption", min=1, help="Most images that are generated of one caption."
    ),
    keep: int = typer.Option(
        10, "--keep", min=1, help="Most misclassified images that are kept of one caption."
    ),
    most_captions: int = typer.Option(
        200, "--most-captions", min=1, help="Most captions, chosen at random."
    ),
    baseline: int = typer.Option(
        48, "--baseline", min=0, help="Images of each class's baseline prompt, to compare with."
    ),
    models: list[Path] = typer.Option(
        [],
        "--models",
        help="Further project folders whose classifiers the set is put to; repeatable.",
    ),
    beside: list[Path] = typer.Option(
        [], "--beside", help="Further sets of images to compare with; repeatable."
    ),
    inception: str = typer.Option(
        "", "--inception", help="Inception network for FID and KID: file, folder or timm name."
    ),
    generator: str = GeneratorOption,
    engine: str = EngineOption,
    as_json: bool = JsonOption,
) -> None:
    """Make a set of images that the classifier gets wrong: generated from captions of hard ones, and measured."""
    from weakspot.generate.adversarial import AdversarialEffort, AdversarialRequest
    from weakspot.project.adversarial import adversarial_lines, make_for_project, write_set_page

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
        made = make_for_project(
            project, request, models=models, generator=generator, engine=engine, progress=progress
        )
        files = write_set_page(made, to)
    lines = (*adversarial_lines(made.record), f"Page: {files[0]}")
    terminal.show(made.record, lines, as_json=as_json)


def collective(
    projects: list[Path] = FamilyArgument,
    kind: int = typer.Option(
        1, "--type", min=1, max=2, help="1: one set from the failures of all; 2: from those of one."
    ),
    source: str = SourceOption,
    method: str = typer.Option(
        "slice-balanced", "--method", help="Strategy that chooses and weighs the samples."
    ),
    output: Path | None = typer.Option(
        None,
        "--output",
        "--out",
        help="Folder for the page, the record, the set and the repaired layers.",
    ),
    as_json: bool = JsonOption,
) -> None:
    """Repair a family of classifiers with one set: beside each one's own repair and a random set of the same kind."""
    from weakspot.project.collective import (
        FamilyRequest,
        collective_lines,
        repair_family,
        write_family,
    )

    request = FamilyRequest(kind=1 if kind == 1 else 2, source=source, method=method)
    with terminal.showing_progress() as progress:
        result = repair_family(projects, request, progress=progress)
    files = write_family(result, output) if output is not None else ()
    lines = (*collective_lines(result.repair), *(f"Page: {path}" for path in files[:1]))
    terminal.show(result.repair, lines, as_json=as_json)


app = typer.Typer(
    name="lab",
    cls=LabGroup,
    help="Research commands: compare methods, learn a text side, repair and test with generated images.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
for _command in (collective, refine, adversarial):
    _name = _command.__name__
    app.command(_name, cls=OwnCommand, epilog=example_of(_name))(_command)
