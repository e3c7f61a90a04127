"""Research commands, `weakspot lab ...`: align, bench, collective, reproduce, sweep, and those of lab_images."""

from pathlib import Path

import typer

from weakspot.cli.examples import example_of
from weakspot.cli.lab_images import adversarial, decode, refine
from weakspot.cli.options import (
    EngineOption,
    FamilyArgument,
    JsonOption,
    OwnCommand,
    ProjectOption,
    RunOption,
    SeedOption,
    SourceOption,
    TopicGroup,
)


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
    from weakspot.pipeline.settings import Settings

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
    from weakspot.lab.collective.page import collective_lines, write_family
    from weakspot.lab.collective.repair import FamilyRequest, repair_family

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
    from weakspot.cli.repair import repair_settings
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
