"""Commands that make parts: align."""

from pathlib import Path

import typer


def align(
    out: Path = typer.Argument(..., help="Folder to write the text side and its card to."),
    project: Path | None = typer.Option(None, "--project", "-p", help="Learn from a project's pictures, with its embedder."),
    column: str = typer.Option("", "--column", help="With --project: metadata column that holds the caption; empty: the labels."),
    vectors: Path | None = typer.Option(None, "--vectors", help="Without a project: image vectors [n, d] as .npy."),
    texts: Path | None = typer.Option(
        None,
        "--texts",
        help="With --vectors: JSON lines in the same order, with `captions` or `label`; `split` = test: measure on these.",
    ),
    loss: str = typer.Option("contrastive", "--loss", help="contrastive or ridge."),
    seed: int = typer.Option(0, "--seed", help="Same seed, same answer."),
    as_json: bool = typer.Option(False, "--json", help="Write the figures as JSON to the output stream."),
) -> None:
    """Learn the text side of a frozen image encoder from captioned or labelled pictures."""
    from weakspot.app.aligning import align_project, align_vectors
    from weakspot.cli import terminal
    from weakspot.core.errors import ConfigError

    with terminal.showing_progress() as progress:
        if project is not None and vectors is None:
            outcome = align_project(project, out, column=column, loss=loss, seed=seed, progress=progress)
        elif vectors is not None and texts is not None and project is None:
            outcome = align_vectors(vectors, texts, out, loss=loss, seed=seed, progress=progress)
        else:
            raise ConfigError("There is nothing to learn from.", fix="Give --project, or --vectors together with --texts.")
    if as_json:
        terminal.print_json({"folder": str(outcome.folder), "figures": outcome.figures})
        return
    terminal.say(f"Wrote {outcome.folder}: text side, CARD.md and card.json.")
    for name, value in outcome.figures.items():
        terminal.say(f"  {name}: {value:.3f}")


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(align)
