"""Research commands, `weakspot lab ...`: align, bench, collective, reproduce, sweep, refine, decode, adversarial."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weakspot.cli.options import (
    EngineOption,
    FamilyArgument,
    GeneratorOption,
    JsonOption,
    OwnCommand,
    ProjectOption,
    RunOption,
    SeedOption,
    SourceOption,
    TopicGroup,
    example_of,
    open_with_generator,
)

if TYPE_CHECKING:
    from weakspot.project.refine.request import RefineRequest


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
    from weakspot.project.refine.request import BESIDE, KINDS, RefineRequest, predefined_values

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
    parts = (generator, engine)
    if len(folders) > 1:
        _refine_several(folders, request, parts, to, kind or 1, source, as_json=as_json)
        return
    if kind is not None or source:
        raise ConfigError(
            "--type and --from are for several projects.",
            given=str(folders[0]),
            fix="Name more projects.",
        )
    _refine_one(folders[0], request, parts, to, as_json=as_json)


def _refine_one(
    folder: Path,
    request: "RefineRequest",
    parts: tuple[str, str],
    to: Path | None,
    *,
    as_json: bool,
) -> None:
    from weakspot.cli import terminal
    from weakspot.project.refine.page import refinement_lines, write_refinement
    from weakspot.project.refine.projects import refine_project

    with terminal.showing_progress() as progress:
        opened = open_with_generator(folder, *parts, progress)
        refined = refine_project(opened, request, progress=progress)
        files = write_refinement(refined, to or folder / "refinements" / "-".join(request.kinds))
    lines = (*refinement_lines(refined.refinement), f"Page with the images: {files[0]}")
    terminal.show(refined.refinement, lines, as_json=as_json)


def _refine_several(
    folders: list[Path],
    request: "RefineRequest",
    parts: tuple[str, str],
    to: Path | None,
    kind: int,
    source: str,
    *,
    as_json: bool,
) -> None:
    from weakspot.cli import terminal
    from weakspot.project.refine.page import family_lines, write_refined_family
    from weakspot.project.refine.projects import refine_projects

    with terminal.showing_progress() as progress:
        opened = [open_with_generator(folder, *parts, progress) for folder in folders]
        name = Path(source).resolve().name if source else ""
        refined = refine_projects(
            opened, request, kind=1 if kind == 1 else 2, source=name, progress=progress
        )
        files = write_refined_family(refined, to or folders[0] / "refinements" / f"type-{kind}")
    lines = (*family_lines(refined.refinement), f"Page with the images: {files[0]}")
    terminal.show(refined.refinement, lines, as_json=as_json)


def decode(
    project: Path = ProjectOption,
    run_id: str = RunOption,
    slice_id: str = typer.Option(
        "",
        "--slice",
        help="Slice of the run (id or its beginning); default: the first with a direction.",
    ),
    alphas: list[float] = typer.Option(
        [0.0, 0.1, 0.2, 0.3],
        "--alpha",
        min=0.0,
        max=1.0,
        help="Share of the rotation; repeatable.",
    ),
    number: int = typer.Option(
        8, "--number", "-n", min=1, help="Images for every share, in each of the two series."
    ),
    generator: str = GeneratorOption,
    engine: str = EngineOption,
    to: Path | None = typer.Option(
        None, "--to", help="Folder for images, table, sheet and record; default: in the project."
    ),
    as_json: bool = JsonOption,
) -> None:
    """Show what a failure direction looks like: a class rotated towards it and away; the generator must decode embeddings."""
    from weakspot.cli import terminal
    from weakspot.lab.decode.decoding import DecodeRequest, decode_direction
    from weakspot.lab.decode.files import explanation, write_decoded

    request = DecodeRequest(slice_id=slice_id, alphas=tuple(alphas), n_each=number)
    with terminal.showing_progress() as progress:
        opened = open_with_generator(project, generator, engine, progress)
        result = decode_direction(opened, request, run_id=run_id or None)
        files = write_decoded(result, to or opened.folder / "decoded" / result.facts.slice_id)
    lines = (*explanation(result.facts), f"Sheet with both series: {files[0]}")
    terminal.show(result.facts, lines, as_json=as_json)


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
    from weakspot.cli import terminal
    from weakspot.generate.adversarial import AdversarialEffort, AdversarialRequest
    from weakspot.project.adversarial import make_for_project
    from weakspot.project.adversarial_page import adversarial_lines, write_set_page

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


def align(
    out: Path = typer.Argument(..., help="Folder to write the text side and its card to."),
    project: Path | None = typer.Option(
        None, "--project", "-p", help="Learn from a project's images, with its embedder."
    ),
    column: str = typer.Option(
        "",
        "--column",
        help="With --project: metadata column that holds the caption; empty: the labels.",
    ),
    embeddings: Path | None = typer.Option(
        None, "--embeddings", help="Without a project: image embeddings [n, d] as .npy."
    ),
    texts: Path | None = typer.Option(
        None,
        "--texts",
        help="With --embeddings: JSON lines in the same order, with `captions` or `label`; `split` = test: measure on these.",
    ),
    loss: str = typer.Option("contrastive", "--loss", help="contrastive or ridge."),
    seed: int = SeedOption,
    as_json: bool = JsonOption,
) -> None:
    """Learn a text side for a frozen image encoder: from captioned or labelled images."""
    from weakspot.cli import terminal
    from weakspot.core.errors import ConfigError
    from weakspot.lab.align.aligning import align_embeddings, align_project

    with terminal.showing_progress() as progress:
        if project is not None and embeddings is None:
            result = align_project(
                project, out, column=column, loss=loss, seed=seed, progress=progress
            )
        elif embeddings is not None and texts is not None and project is None:
            result = align_embeddings(
                embeddings, texts, out, loss=loss, seed=seed, progress=progress
            )
        else:
            raise ConfigError(
                "There is nothing to learn from.",
                fix="Give --project, or --embeddings together with --texts.",
            )
    lines = [f"Wrote {result.folder}: text side, CARD.md and card.json."]
    lines += [f"  {name}: {value:.3f}" for name, value in result.figures.items()]
    shown = {"folder": str(result.folder), "figures": result.figures}
    terminal.show(shown, lines, as_json=as_json)


def bench(
    problems: list[str] = typer.Option(
        ["planted"],
        "--problems",
        help="planted, planted-noisy, groceries or cifar10 (photographs; embedded once); repeatable.",
    ),
    kinds: list[str] = typer.Option(
        [],
        "--kind",
        help="rare, correlation, noisy-label, several or null (planted problems only); all by default.",
    ),
    methods: list[str] = typer.Option(
        [],
        "--method",
        help="Registered discoverers, repeatable; by default all that need no words of yours.",
    ),
    n_worlds: int = typer.Option(5, "--worlds", min=1, help="Planted worlds of every kind."),
    n_samples: int = typer.Option(4000, "--samples", min=100, help="Samples of a planted world."),
    seed: int = SeedOption,
    out: Path = typer.Option(Path("bench"), "--out", help="Folder for table, plots and scores."),
    as_json: bool = JsonOption,
) -> None:
    """Compare methods of discovery where the truth is known: precision, names, false findings, time, memory."""
    from weakspot.cli import terminal
    from weakspot.lab.bench.choice import BenchChoice, chosen_problems
    from weakspot.lab.bench.pages import BenchJournal, table
    from weakspot.lab.bench.running import BenchPlan, run_bench, write_bench
    from weakspot.lab.bench.scores import table_rows
    from weakspot.run.settings import Settings

    choice = BenchChoice(
        problems=tuple(problems),
        kinds=tuple(kinds),
        n_worlds=n_worlds,
        n_samples=n_samples,
        seed=seed,
    )
    plan = BenchPlan(methods=tuple(methods), settings=Settings(seed=seed))
    journal = BenchJournal(out, choice.command(methods))
    with terminal.showing_progress() as progress:
        scores = run_bench(
            chosen_problems(choice, progress=progress),
            plan,
            journal=journal,
            progress=lambda done, total: progress("problems", done, total or choice.n_problems),
        )
    files = write_bench(scores, out, command=choice.command(methods))
    journal.finish()
    rows = table_rows(scores)
    shown = [row.model_dump(mode="json") for row in rows]
    terminal.show(shown, (table(rows), f"Written: {files[0]}"), as_json=as_json)


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
    from weakspot.cli import terminal
    from weakspot.project.collective import FamilyRequest, repair_family
    from weakspot.project.collective_page import collective_lines, write_family

    request = FamilyRequest(kind=1 if kind == 1 else 2, source=source, method=method)
    with terminal.showing_progress() as progress:
        result = repair_family(projects, request, progress=progress)
    files = write_family(result, output) if output is not None else ()
    lines = (*collective_lines(result.repair), *(f"Page: {path}" for path in files[:1]))
    terminal.show(result.repair, lines, as_json=as_json)


def reproduce(
    paper: str = typer.Argument(
        ..., help="refine, directions, search, clarify or hibug; or page: one page of all results."
    ),
    out: Path = typer.Option(
        ..., "--out", help="Folder for tables, plots and results; an interrupted run goes on there."
    ),
    data: Path | None = typer.Option(
        None, "--data", help="Folder with the paper's own data set, as it is distributed."
    ),
    models: list[str] = typer.Option(
        [], "--models", help="Names or files of models; repeatable. Default: the protocol's own."
    ),
    generator: str = typer.Option("", "--generator", help="Registered name of an image generator."),
    stand_in: bool = typer.Option(
        False, "--stand-in", help="Run on a stand-in of the same shape; every table says so."
    ),
    small: bool = typer.Option(
        False, "--small", help="Seconds instead of minutes, to see that it runs."
    ),
    seed: int = SeedOption,
    as_json: bool = JsonOption,
) -> None:
    """Run a paper's protocol again: its tables and figures with the columns paper, ours, difference, why."""
    from weakspot.cli import terminal
    from weakspot.lab.reproduce.page import write_page
    from weakspot.lab.reproduce.protocol import open_protocol
    from weakspot.lab.reproduce.request import ReproduceRequest
    from weakspot.lab.reproduce.running import run_protocol
    from weakspot.lab.reproduce.writing import TABLES, figure_table

    if paper == "page":
        page = write_page(out)
        terminal.show({"page": str(page)}, [f"Written: {page}"], as_json=as_json)
        return
    request = ReproduceRequest(
        paper=paper,
        out=out,
        data=data,
        models=tuple(models),
        generator=generator,
        is_stand_in=stand_in,
        is_small=small,
        seed=seed,
    )
    protocol = open_protocol(request)
    with terminal.showing_progress() as progress:
        found = run_protocol(protocol, request, progress=progress, say=terminal.remark)
    lines = (figure_table(found.figures), f"Written: {out / TABLES} ({found.mark})")
    terminal.show(found, lines, as_json=as_json)


def sweep(
    to: Path = typer.Option(..., "--to", help="Folder for the page and its figures."),
    project: Path = ProjectOption,
    run_id: str = RunOption,
    synthetic: Path | None = typer.Option(
        None, "--synthetic", help="Folder of generated images, one sub-folder per class."
    ),
    engine: str = EngineOption,
    as_json: bool = JsonOption,
) -> None:
    """Show the trade-off of a synthetic repair: how much generated samples count, and from how many names they come."""
    from weakspot.cli import terminal
    from weakspot.cli.loop import repair_settings
    from weakspot.lab.sweep.sweeping import sweep_synthetic
    from weakspot.project.project import Project

    with terminal.showing_progress() as progress:
        settings = repair_settings(project, synthetic=synthetic, engine=engine)
        opened = Project(project, settings, progress=progress)
        files = [str(path) for path in sweep_synthetic(opened, to, run_id or None)]
    terminal.show(files, files, as_json=as_json)


COMMANDS = {
    command.__name__: command
    for command in (align, bench, collective, reproduce, sweep, refine, decode, adversarial)
}
app = typer.Typer(
    name="lab",
    cls=TopicGroup,
    help="Research commands: compare methods, learn a text side, repair and test with generated images.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
for _name, _command in COMMANDS.items():
    app.command(_name, cls=OwnCommand, epilog=example_of(_name))(_command)
