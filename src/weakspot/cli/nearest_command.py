"""The command `nearest`: pictures nearest to a phrase or to a picture."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from weakspot.cli.running import JsonOption, ProjectOption

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weakspot.app.nearest_pictures import IndexKind, NearestReport
    from weakspot.core.evidence import Share

COLUMNS = ("rank", "score", "sample_id", "split", "label", "prediction", "failed", "location")


def nearest(
    phrase: str = typer.Argument("", help='Words: "green apples on grass".'),
    like: str = typer.Option("", "--like", help="Instead of words: the id of a sample, or a picture file."),
    top: int = typer.Option(20, "--top", help="How many pictures to list."),
    above: float | None = typer.Option(None, "--above", help="Least similarity (-1 to 1); all that reach it are counted."),
    class_name: str = typer.Option("", "--class", help="Only samples with this label."),
    splits: list[str] = typer.Option([], "--split", help="Only samples of this split; repeatable."),
    index: str = typer.Option(
        "exact", "--index", help="exact, quantised (same answer from a smaller copy) or approximate (may miss some)."
    ),
    project: Path = ProjectOption,
    as_json: bool = JsonOption,
    csv_file: Path | None = typer.Option(None, "--csv", help="Also write the list to this file."),
) -> None:
    """List the pictures nearest to your words or to a picture. This is for looking; `weakspot hypothesis` is for proof."""
    from weakspot.app.nearest_pictures import NearestRequest
    from weakspot.app.project import Project
    from weakspot.cli import terminal

    request = NearestRequest(
        phrase=phrase,
        like=like,
        n_wanted=top,
        above=above,
        class_name=class_name,
        splits=tuple(splits),
        index=_index_kind(index),
    )
    with terminal.showing_progress() as progress:
        report = Project.open(project, progress=progress).nearest(request)
    if csv_file is not None:
        _write_csv(csv_file, report)
    if as_json:
        terminal.print_json(report.model_dump(mode="json"))
    else:
        terminal.say("\n".join(_lines(report)))


def _index_kind(given: str) -> "IndexKind":
    from weakspot.app.nearest_pictures import IndexKind
    from weakspot.core.errors import ConfigError

    if given not in tuple(IndexKind):
        raise ConfigError(
            "There is no such index.", where="--index", given=given, fix=f"Choose one of {[kind.value for kind in IndexKind]}."
        )
    return IndexKind(given)


def _lines(report: "NearestReport") -> "Iterator[str]":
    for rank, one in enumerate(report.pictures, start=1):
        said = "" if one.prediction is None else f" -> {one.prediction}{' FAILED' if one.is_failure else ''}"
        facts = f"{one.split}: {one.label or 'unlabelled'}{said}"
        yield f"{rank:>4}  {one.score:6.3f}  {one.sample_id}  {facts}  {one.location or 'no picture'}"
    if not report.pictures:
        yield "No picture was found."
    above = "" if report.n_above is None else f", {report.n_above} of them above the least similarity"
    yield f"{report.n_compared} samples were compared{above}. {report.n_kept_back} of the confirmation half are not shown."
    if report.failing.total:
        others = f"; of its others {_counted(report.failing_elsewhere)}" if report.failing_elsewhere.total else ""
        yield f"Of the near ones, on the discovery half, {_counted(report.failing)} fail{others}."
    if report.index == "approximate":
        yield "The approximate index may have missed some; --index exact misses none."
    yield "This is looking, not proof: you saw these samples before you said what they have in common."
    yield "To prove it on samples nobody has seen: weakspot hypothesis --class CLASS 'your words'"


def _counted(share: "Share") -> str:
    from weakspot.report.wording import percent

    interval = f"{percent(share.interval.low)} to {percent(share.interval.high)}"
    return f"{share.count} of {share.total} ({percent(share.value)}, {interval})"


def _write_csv(path: Path, report: "NearestReport") -> None:
    import csv
    import io

    from weakspot.core.errors import ConfigError
    from weakspot.store import atomic

    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for rank, one in enumerate(report.pictures, start=1):
        failed = "" if one.is_failure is None else str(one.is_failure).lower()
        writer.writerow(
            [rank, f"{one.score:.9f}", one.sample_id, one.split, one.label, one.prediction or "", failed, one.location or ""]
        )
    try:
        atomic.write_bytes(path, text.getvalue().encode())
    except OSError as error:
        raise ConfigError(f"The list cannot be written: {error.strerror}.", where=str(path)) from error


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command()(nearest)
