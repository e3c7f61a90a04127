"""Measures every repair where the truth is known: `python benchmarks/repair.py worlds budgets`."""

from pathlib import Path

import typer


def measure_repairs(
    experiments: list[str] = typer.Argument(
        ..., help="worlds, budgets, cifar10, groceries; several are run one after the other."
    ),
    n_worlds: int = typer.Option(
        20, "--worlds", min=1, help="Planted worlds of every kind (worlds, budgets)."
    ),
    n_samples: int | None = typer.Option(
        None,
        "--samples",
        min=500,
        help="Samples of a planted world; 10,000 by default (worlds), 4,000 (budgets).",
    ),
    n_runs: int = typer.Option(
        5, "--runs", min=1, help="Splits of the images (cifar10, groceries)."
    ),
    n_images: int = typer.Option(
        8000,
        "--images",
        min=500,
        max=8000,
        help="Images beside the 2,000 test images (cifar10); embedded once.",
    ),
    seed: int = typer.Option(0, "--seed", min=0, help="Same seed, same answer."),
    out: Path = typer.Option(Path("repair-results"), "--out", help="Folder for pages and numbers."),
    as_json: bool = typer.Option(
        False, "--json", help="Write all figures as JSON to the output stream."
    ),
) -> None:
    """Measure every repair beside its baselines on planted worlds, CIFAR-10 and groceries, before and after."""
    from repair_results.choice import RepairChoice
    from repair_results.experiment import run_experiment

    from weakspot.cli import terminal

    choice = RepairChoice(
        experiments=tuple(experiments),
        n_worlds=n_worlds,
        n_samples=n_samples,
        n_runs=n_runs,
        n_images=n_images,
        seed=seed,
    )
    with terminal.showing_progress() as progress:
        results = [run_experiment(one, out, progress=progress) for one in choice.chosen()]
    if as_json:
        terminal.print_json([one.record for one in results])
        return
    for one in results:
        terminal.say(one.page)
        terminal.say(f"Written: {one.files[0]}")


if __name__ == "__main__":
    typer.run(measure_repairs)
