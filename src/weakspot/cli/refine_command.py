"""The command `refine`: draw what failures show, retrain on it, and measure it beside pictures that show something else."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weakspot.cli.generators import GeneratorOption
from weakspot.cli.running import EngineOption, JsonOption

if TYPE_CHECKING:
    from weakspot.app.refining.request import RefineRequest

FolderOption = typer.Option(None, "--to", help="Folder for page, contact sheet, record and last layer; default: in the project.")


def refine(
    projects: list[Path] = typer.Argument(None, help="Project folders; several on the same pictures are refined with one set."),
    kinds: list[str] = typer.Option([], "--kind", help="Kind of attribute: background, colour, ...; repeatable. Default: both."),
    n_names: int = typer.Option(3, "--names", "-k", help="Values of a kind that are drawn for a class."),
    n_each: int = typer.Option(5, "--each", help="Pictures for every failure that shows a value."),
    most_each: int = typer.Option(20, "--most", help="Most pictures of one prompt."),
    weight: float | None = typer.Option(
        None, "--weight", help="What pictures count beside training samples (lambda; 0.5 in the paper). Default: chosen."
    ),
    beside: list[str] = typer.Option(
        [], "--beside", help="What stands beside it: random, predefined, directions, cutmix, plain; repeatable. Default: all."
    ),
    kind: int | None = typer.Option(
        None, "--type", min=1, max=2, help="Several projects: values from the failures of all, or of one."
    ),
    source: str = typer.Option("", "--from", help="With --type 2: the project whose failures are used; the first by default."),
    generator: str = GeneratorOption,
    engine: str = EngineOption,
    to: Path | None = FolderOption,
    as_json: bool = JsonOption,
) -> None:
    """Retrain on generated pictures of what failures show, beside pictures of the mere class, fixed values and other baselines."""
    from weakspot.app.refining.request import BESIDE, KINDS, RefineRequest
    from weakspot.core.errors import ConfigError

    folders = projects or [Path()]
    request = RefineRequest(
        kinds=tuple(dict.fromkeys(kinds)) or KINDS,
        n_names=n_names,
        n_each=n_each,
        most_each=most_each,
        debug_weight=weight,
        arms=tuple(dict.fromkeys(beside)) or BESIDE,
    )
    if len(folders) == 1:
        if kind is not None or source:
            raise ConfigError("--type and --from are for several projects.", given=str(folders[0]), fix="Name more projects.")
        _refine_one(folders[0], request, (generator, engine), to, as_json=as_json)
    else:
        _refine_several(folders, request, (generator, engine), to, kind or 1, source, as_json=as_json)


def _refine_one(folder: Path, request: "RefineRequest", named: tuple[str, str], to: Path | None, *, as_json: bool) -> None:
    from weakspot.app.refining.page import write_refinement
    from weakspot.app.refining.projects import refine_project
    from weakspot.app.refining.wording import refinement_lines
    from weakspot.cli import terminal
    from weakspot.cli.generators import opened_with

    with terminal.showing_progress() as progress:
        opened = opened_with(folder, *named, progress)
        refined = refine_project(opened, request, progress=progress)
        files = write_refinement(refined, to or folder / "refinements" / "-".join(request.kinds))
    if as_json:
        terminal.print_json(refined.refinement.model_dump(mode="json"))
        return
    terminal.say("\n".join([*refinement_lines(refined.refinement), f"Page with the pictures: {files[0]}"]))


def _refine_several(
    folders: list[Path], request: "RefineRequest", named: tuple[str, str], to: Path | None, kind: int, source: str, *, as_json: bool
) -> None:
    from weakspot.app.refining.page import write_refined_family
    from weakspot.app.refining.projects import refine_projects
    from weakspot.app.refining.wording import family_lines
    from weakspot.cli import terminal
    from weakspot.cli.generators import opened_with

    with terminal.showing_progress() as progress:
        opened = [opened_with(folder, *named, progress) for folder in folders]
        name = Path(source).resolve().name if source else ""
        refined = refine_projects(opened, request, kind=1 if kind == 1 else 2, source=name, progress=progress)
        files = write_refined_family(refined, to or folders[0] / "refinements" / f"type-{kind}")
    if as_json:
        terminal.print_json(refined.refinement.model_dump(mode="json"))
        return
    terminal.say("\n".join([*family_lines(refined.refinement), f"Page with the pictures: {files[0]}"]))


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(refine)
