"""Commands that compare: classifiers with each other, methods with each other."""

from pathlib import Path

import typer


def compare(
    projects: list[Path] = typer.Argument(..., help="Two or more project folders on the same pictures, one a classifier."),
    out: Path = typer.Option(Path("comparison"), "--out", help="Folder for the page and the record."),
    alpha: float = typer.Option(0.05, "--alpha", min=0.0, max=1.0, help="Accepted share of false findings among slices that hold."),
    as_json: bool = typer.Option(False, "--json", help="Write the result as JSON to the output stream."),
) -> None:
    """Compare classifiers: shared failures, slices that hold on several, slices on which two differ most."""
    from weakspot.app.comparing import compare_projects, write_comparison
    from weakspot.cli import terminal
    from weakspot.cli.comparison_table import comparison_lines

    with terminal.showing_progress() as progress:
        comparison = compare_projects(projects, alpha=alpha, progress=progress)
    files = write_comparison(comparison, out)
    if as_json:
        terminal.print_json(comparison.model_dump(mode="json"))
        return
    for line in comparison_lines(comparison):
        terminal.say(line)
    terminal.say(f"Page: {files[0]}")


def bench(
    problems: list[str] = typer.Option(
        ["planted"], "--problems", help="planted, planted-noisy, groceries or cifar10 (photographs; embedded once); repeatable."
    ),
    kinds: list[str] = typer.Option(
        [], "--kind", help="rare, correlation, noisy-label, several or null (planted problems only); all by default."
    ),
    methods: list[str] = typer.Option(
        [], "--method", help="Registered discoverers, repeatable; by default all that need no words of yours."
    ),
    n_worlds: int = typer.Option(5, "--worlds", min=1, help="Planted worlds of every kind."),
    n_samples: int = typer.Option(4000, "--samples", min=100, help="Samples of a planted world."),
    seed: int = typer.Option(0, "--seed", min=0, help="Same seed, same answer."),
    out: Path = typer.Option(Path("bench"), "--out", help="Folder for table, plots and scores."),
    as_json: bool = typer.Option(False, "--json", help="Write the table as JSON to the output stream."),
) -> None:
    """Compare methods of discovery on problems whose truth is known: precision, names, false findings, time, memory."""
    from weakspot.app.bench_choice import BenchChoice, chosen_problems
    from weakspot.app.bench_journal import BenchJournal
    from weakspot.app.benching import BenchPlan, run_bench, write_bench
    from weakspot.app.config import Settings
    from weakspot.benchmark.pages import table
    from weakspot.benchmark.scores import table_rows
    from weakspot.cli import terminal

    choice = BenchChoice(problems=tuple(problems), kinds=tuple(kinds), n_worlds=n_worlds, n_samples=n_samples, seed=seed)
    plan = BenchPlan(methods=tuple(methods), settings=Settings(seed=seed))
    journal = BenchJournal(out, choice.command(methods))
    with terminal.showing_progress() as progress:
        chosen = chosen_problems(choice, progress=progress)
        scores = run_bench(
            chosen, plan, journal=journal, progress=lambda done, total: progress("problems", done, total or choice.n_problems)
        )
    files = write_bench(scores, out, command=choice.command(methods))
    journal.finish()
    rows = table_rows(scores)
    terminal.print_json([row.model_dump(mode="json") for row in rows]) if as_json else terminal.say(table(rows))
    if not as_json:
        terminal.say(f"Written: {files[0]}")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    for command in (compare, bench):
        app.command()(command)
