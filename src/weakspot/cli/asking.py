"""Commands that answer a person's question: hypothesis."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weakspot.app.hypothesising import HalfAnswer, HypothesisReport, PhraseAnswer


def hypothesis(
    phrases: list[str] = typer.Argument(..., help='What failures have in common: "green apples" "on a shelf".'),
    class_name: str = typer.Option(..., "--class", help="The class the phrases are about."),
    project: Path = typer.Option(Path(), "--project", "-p", help="Project folder; it holds weakspot.toml."),
    as_json: bool = typer.Option(False, "--json", help="Write the result as JSON to the output stream."),
) -> None:
    """Say how well your own words tell failures of a class from its other samples, also on samples held out."""
    from weakspot.app.project import Project
    from weakspot.cli import terminal

    with terminal.showing_progress() as progress:
        report = Project.open(project, progress=progress).hypothesis(class_name, phrases)
    if as_json:
        terminal.print_json(report.model_dump(mode="json"))
    else:
        terminal.say("\n".join(_lines(report)))


def _lines(report: "HypothesisReport") -> "Iterator[str]":
    for answer in report.answers:
        yield from _answer_lines(answer)
    looks = "1 phrase has" if report.n_looks == 1 else f"{report.n_looks} different phrases have"
    yield f"So far {looks} been put to these held-out samples (hypotheses.jsonl); the held-out p is multiplied by that."


def _answer_lines(answer: "PhraseAnswer") -> "Iterator[str]":
    from weakspot.report.wording import percent

    cut = "none is better than guessing" if answer.threshold is None else f"{answer.threshold:.4f}"
    yield f"{answer.class_name}: {answer.phrase!r}"
    yield (
        f"  Error Score {answer.discovery.error_score:.2f} in sample (p = {answer.discovery.best_p:.2g}), "
        f"{answer.confirmation.error_score:.2f} held out; threshold {cut}"
    )
    yield f"  in sample: {_half(answer.discovery)}"
    yield f"  held out:  {_half(answer.confirmation)}; p = {answer.p_after_looks:.2g}"
    yield (
        f"  with the threshold that is best held out: Error Score {answer.confirmation.best_score:.2f} "
        f"(p = {answer.confirmation.best_p:.2g})"
    )
    matching = answer.matching
    yield (
        f"  adding the words to the class name fits {matching.count} of {matching.total} samples better ({percent(matching.value)})"
    )
    yield f"  {answer.fit}: {answer.advice}"


def _half(half: "HalfAnswer") -> str:
    from weakspot.report.wording import percent

    inside, outside = half.inside, half.outside
    return (
        f"{inside.total} samples above the threshold, {percent(inside.value)} of them fail "
        f"({percent(inside.interval.low)} to {percent(inside.interval.high)}); "
        f"of the other {outside.total}, {percent(outside.value)} "
        f"({percent(outside.interval.low)} to {percent(outside.interval.high)})"
    )


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(hypothesis)
