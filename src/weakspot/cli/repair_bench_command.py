"""The command that measures repairs where the truth is known."""

from pathlib import Path

import typer


def bench_repair(
    experiments: list[str] = typer.Argument(..., help="worlds, budgets, cifar10, groceries; several are run one after the other."),
    n_worlds: int = typer.Option(20, "--worlds", min=1, help="Planted worlds of every kind (worlds, budgets)."),
    n_samples: int | None = typer.Option(
        None, "--samples", min=500, help="Samples of a planted world; 10,000 by default (worlds), 4,000 (budgets)."
    ),
    n_runs: int = typer.Option(5, "--runs", min=1, help="Splits of the pictures (cifar10, groceries)."),
    n_pictures: int = typer.Option(
        8000, "--pictures", min=500, max=8000, help="Pictures beside the 2,000 test pictures (cifar10); embedded once."
    ),
    seed: int = typer.Option(0, "--seed", min=0, help="Same seed, same answer."),
    out: Path = typer.Option(Path("bench-repair"), "--out", help="Folder for pages and numbers."),
    as_json: bool = typer.Option(False, "--json", help="Write all figures as JSON to the output stream."),
) -> None:
    """Measure every repair beside its baselines on planted worlds, CIFAR-10 and groceries, before and after."""
    from weakspot.app.repair_results.choice import RepairChoice
    from weakspot.app.repair_results.experiment import run_experiment
    from weakspot.cli import terminal

    choice = RepairChoice(
        experiments=tuple(experiments), n_worlds=n_worlds, n_samples=n_samples, n_runs=n_runs, n_pictures=n_pictures, seed=seed
    )
    with terminal.showing_progress() as progress:
        results = [run_experiment(one, out, progress=progress) for one in choice.chosen()]
    if as_json:
        terminal.print_json([one.record for one in results])
        return
    for one in results:
        terminal.say(one.page)
        terminal.say(f"Written: {one.files[0]}")


def register(app: typer.Typer) -> None:
    """Add the command of this file."""
    app.command()(bench_repair)
