"""Commands that answer a question: ask, nearest, compare."""

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weakspot.cli import terminal
from weakspot.cli.options import FamilyArgument, JsonOption, ProjectOption, opened
from weakspot.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weakspot.core.evidence import Share
    from weakspot.project.comparison import Comparison
    from weakspot.project.nearest import IndexKind, NearestResult
    from weakspot.run.phrase_questions import HalfAnswer, PhraseAnswer

COLUMNS = ("rank", "score", "sample_id", "split", "label", "prediction", "failed", "location")
MAX_DIFFERENCES = 8


def ask(
    phrases: list[str] = typer.Argument(
        ...,
        help='What failures have in common: "green apples" "on a shelf", "colour = red and size = small", "caption says wet road".',
    ),
    class_name: str = typer.Option(
        "", "--class", help="The class the phrases are about; by default the one that they name."
    ),
    project: Path = ProjectOption,
    as_json: bool = JsonOption,
) -> None:
    """Test your own words: how well they tell failures of a class from its other samples, also on samples held out."""
    from weakspot.words.meanings import class_in

    with opened(project) as asked:
        named = class_name or class_in(phrases, asked.samples().dataset.class_names)
        report = asked.ask(named, phrases)
    lines = chain.from_iterable(map(_answer_lines, report.answers))
    terminal.show(report, chain(lines, [report.left]), as_json=as_json)


def _answer_lines(answer: "PhraseAnswer") -> "Iterator[str]":
    from weakspot.report.wording import exact_p, percent

    if answer.compared_with == "columns":
        yield from _rule_lines(answer)
        return
    cut = "none is better than guessing" if answer.threshold is None else f"{answer.threshold:.4f}"
    yield f"{answer.class_name}: {answer.phrase!r}"
    yield (
        f"  Error Score {answer.discovery.error_score:.2f} in sample ({exact_p(answer.discovery.best_p)}), "
        f"{answer.confirmation.error_score:.2f} held out; threshold {cut}"
    )
    yield f"  in sample: {_half(answer.discovery)}"
    yield (
        f"  held out:  {_half(answer.confirmation)}; {exact_p(answer.p_value)}, "
        f"over all that these samples were asked {exact_p(answer.p_after_looks, name='q')}"
    )
    matching = answer.matching
    yield (
        f"  adding the words to the class name fits {matching.count} of {matching.total} samples better ({percent(matching.value)})"
    )
    yield f"  {answer.fit}: {answer.advice}"


def _rule_lines(answer: "PhraseAnswer") -> "Iterator[str]":
    from weakspot.report.wording import exact_p

    yield f"{answer.class_name}: {answer.phrase}"
    yield f"  {answer.rule}"
    yield f"  looked at: {_half(answer.discovery, 'such samples')}"
    yield f"  held out:  {_half(answer.confirmation, 'such samples')}"
    yield (
        f"  held out, {exact_p(answer.p_value)}; over all that these samples were asked "
        f"{exact_p(answer.p_after_looks, name='q')}"
    )
    yield f"  {answer.fit}: {answer.advice}"


def _half(half: "HalfAnswer", which: str = "samples above the threshold") -> str:
    from weakspot.report.wording import percent

    inside, outside = half.inside, half.outside
    if not inside.total:
        return f"no {which}; of {outside.total}, {percent(outside.value)} fail"
    return (
        f"{inside.total} {which}, {percent(inside.value)} of them fail "
        f"({percent(inside.interval.low)} to {percent(inside.interval.high)}); "
        f"of the other {outside.total}, {percent(outside.value)} "
        f"({percent(outside.interval.low)} to {percent(outside.interval.high)})"
    )


def nearest(
    phrase: str = typer.Argument("", help='Words: "green apples on grass".'),
    like: str = typer.Option(
        "", "--like", help="Instead of words: the id of a sample, or an image file."
    ),
    top: int = typer.Option(20, "--top", help="How many images to list."),
    above: float | None = typer.Option(
        None, "--above", help="Least similarity (-1 to 1); all that reach it are counted."
    ),
    class_name: str = typer.Option("", "--class", help="Only samples with this label."),
    splits: list[str] = typer.Option([], "--split", help="Only samples of this split; repeatable."),
    index: str = typer.Option(
        "exact",
        "--index",
        help="exact, quantised (same answer from a smaller copy) or approximate (may miss some).",
    ),
    project: Path = ProjectOption,
    as_json: bool = JsonOption,
    csv_file: Path | None = typer.Option(None, "--csv", help="Also write the list to this file."),
) -> None:
    """List the images nearest to your words or to an image. This is for looking; `weakspot ask` is for proof."""
    from weakspot.project.nearest import NearestRequest

    request = NearestRequest(
        phrase=phrase,
        like=like,
        n_wanted=top,
        above=above,
        class_name=class_name,
        splits=tuple(splits),
        index=_index_kind(index),
    )
    with opened(project) as examined:
        report = examined.nearest(request)
    if csv_file is not None:
        _write_csv(csv_file, report)
    terminal.show(report, _nearest_lines(report), as_json=as_json)


def _index_kind(given: str) -> "IndexKind":
    from weakspot.project.nearest import IndexKind

    if given not in tuple(IndexKind):
        raise ConfigError(
            "There is no such index.",
            where="--index",
            given=given,
            fix=f"Choose one of {[kind.value for kind in IndexKind]}.",
        )
    return IndexKind(given)


def _nearest_lines(report: "NearestResult") -> "Iterator[str]":
    for rank, one in enumerate(report.images, start=1):
        failed = " FAILED" if one.is_failure else ""
        predicted = "" if one.prediction is None else f" -> {one.prediction}{failed}"
        facts = f"{one.split}: {one.label or 'unlabelled'}{predicted}"
        yield f"{rank:>4}  {one.score:6.3f}  {one.sample_id}  {facts}  {one.location or 'no image'}"
    if not report.images:
        yield "No image was found."
    above = (
        "" if report.n_above is None else f", {report.n_above} of them above the least similarity"
    )
    yield f"{report.n_compared} samples were compared{above}. {report.n_kept_back} of the confirmation half are not shown."
    if report.failing.total:
        others = (
            f"; of its others {_counted(report.failing_elsewhere)}"
            if report.failing_elsewhere.total
            else ""
        )
        yield f"Of the near ones, on the discovery half, {_counted(report.failing)} fail{others}."
    if report.index == "approximate":
        yield "The approximate index may have missed some; --index exact misses none."
    yield "This is looking, not proof: you saw these samples before you said what they have in common."
    yield "To prove it on samples nobody has seen: weakspot ask --class CLASS 'your words'"


def _counted(share: "Share") -> str:
    from weakspot.report.wording import percent

    interval = f"{percent(share.interval.low)} to {percent(share.interval.high)}"
    return f"{share.count} of {share.total} ({percent(share.value)}, {interval})"


def _write_csv(path: Path, report: "NearestResult") -> None:
    from weakspot.store import atomic
    from weakspot.store.csv_tables import csv_text

    rows = [
        [
            rank,
            f"{one.score:.9f}",
            one.sample_id,
            one.split,
            one.label,
            one.prediction,
            "" if one.is_failure is None else str(one.is_failure).lower(),
            one.location,
        ]
        for rank, one in enumerate(report.images, start=1)
    ]
    try:
        atomic.write_bytes(path, csv_text(COLUMNS, rows).encode())
    except OSError as error:
        raise ConfigError(
            f"The list cannot be written: {error.strerror}.", where=str(path)
        ) from error


def compare(
    projects: list[Path] = FamilyArgument,
    out: Path = typer.Option(
        Path("comparison"), "--out", help="Folder for the page and the record."
    ),
    alpha: float = typer.Option(
        0.05,
        "--alpha",
        min=0.0,
        max=1.0,
        help="Accepted share of false findings among slices that hold.",
    ),
    as_json: bool = JsonOption,
) -> None:
    """Compare classifiers: shared failures, slices that hold on several, slices on which two differ most."""
    from weakspot.project.comparison import compare_projects, write_comparison

    with terminal.showing_progress() as progress:
        comparison = compare_projects(projects, alpha=alpha, progress=progress)
    files = write_comparison(comparison, out)
    lines = (*_comparison_lines(comparison), f"Page: {files[0]}")
    terminal.show(comparison, lines, as_json=as_json)


def _comparison_lines(comparison: "Comparison") -> "Iterator[str]":
    from weakspot.report.wording import exact_p

    width = max(len(name) for name in comparison.models)
    yield f"{comparison.n_samples} samples that all classifiers were measured on."
    yield "Shared failures (intersection over union):"
    for name, line in zip(comparison.models, comparison.overlaps, strict=True):
        rate = comparison.failure_rates[name]
        yield f"  {name:<{width}}  fails {100 * rate:3.0f} %  " + "  ".join(
            f"{value:.2f}" for value in line
        )
    yield f"Families: {'; '.join(', '.join(family) for family in comparison.families)}"
    for slice_id in dict.fromkeys(one.slice_id for one in comparison.slices):
        entries = [one for one in comparison.slices if one.slice_id == slice_id]
        yield f"{entries[0].title} (found on {entries[0].found_on}, {entries[0].n_inside} samples)"
        for one in entries:
            says = "holds" if one.holds else "does not hold"
            rate, low, high = (
                100 * part
                for part in (one.rate_inside, one.interval_inside.low, one.interval_inside.high)
            )
            yield f"  {one.model:<{width}}  fails {rate:.0f} % ({low:.0f}-{high:.0f}), rest {100 * one.rate_outside:.0f} %: {says}"
    clear = [
        pair for pair in comparison.differences if pair.interval.low > 0 or pair.interval.high < 0
    ][:MAX_DIFFERENCES]
    if clear:
        yield "Where two classifiers differ most:"
    for pair in clear:
        points, low, high = (
            100 * part for part in (pair.difference, pair.interval.low, pair.interval.high)
        )
        against = f"{pair.first} fails {points:+.0f} points against {pair.second}"
        yield f"  {pair.title}: {against} ({low:+.0f} to {high:+.0f}, {exact_p(pair.q_value, name='q')})"
    yield from comparison.notes
