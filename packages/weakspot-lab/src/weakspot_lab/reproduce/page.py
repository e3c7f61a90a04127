"""One page for all papers: headline figures with paper, ours on a stand-in, ours on the paper's data, and a sentence."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from weakspot.core.errors import ConfigError, DataError
from weakspot.store import atomic
from weakspot_lab.reproduce.figures import ComparedFigure, PaperFigure, shown
from weakspot_lab.reproduce.writing import RESULTS, Reproduction, plain, reasons_once

FOLDER, PAGE = "papers", "papers.md"
TRUE_DATA = "-data"
INTRODUCTION = """# The papers' figures beside ours

Every figure here was written by `weakspot lab reproduce`, and this page by `weakspot lab reproduce page --out docs/results`
from the files in `docs/results/papers`. *Stand-in*: the paper's data is not on the machine that measured, so a problem of the
same shape, planted or carried by a package, takes its place; its figures show whether the paper's effect appears, not how
large it is on the paper's data. The column *paper's data* is filled when somebody runs the same command with `--data`.
"""


def write_page(out: Path) -> Path:
    """Write the page from the results below `out/papers`.

    Raises:
        ConfigError: if there are no results.
    """
    found = [*_results(out / FOLDER)]
    stand_ins = {one.paper: one for one in found if one.is_stand_in}
    true_data: dict[str, list[Reproduction]] = {}
    for one in found:
        if not one.is_stand_in:
            true_data.setdefault(one.paper, []).append(one)
    if not stand_ins and not true_data:
        raise ConfigError(
            "There are no results to make a page of.",
            where=str(out / FOLDER),
            fix=f"First: weakspot lab reproduce PAPER --stand-in --out {out / FOLDER}/PAPER",
        )
    text = [INTRODUCTION, *_counts([*stand_ins.values()])]
    for paper in sorted({*stand_ins, *true_data}):
        text += _section(stand_ins.get(paper), true_data.get(paper, ()))
    path = out / PAGE
    atomic.write_bytes(path, ("\n".join(text).rstrip() + "\n").encode())
    return path


def _results(folder: Path) -> Iterator[Reproduction]:
    for path in sorted(folder.glob(f"*/{RESULTS}")):
        try:
            found = Reproduction.model_validate_json(path.read_bytes())
        except ValidationError as error:
            raise DataError("Results cannot be read.", where=str(path)) from error
        if not found.is_small:
            yield found


def _counts(found: Sequence[Reproduction]) -> Iterator[str]:
    headlines = [one for each in found for one in each.figures if one.figure.is_headline]
    compared = [one for one in headlines if one.effect]
    counts = {
        effect: sum(one.effect == effect for one in compared) for effect in ("yes", "unclear", "no")
    }
    yield (
        f"{len(headlines)} headline figures; {len(compared)} of them claim that something is better than something else: here that "
        f"shows in {counts['yes']}, is in doubt in {counts['unclear']} and does not show in {counts['no']}.\n"
    )


def _section(stand_in: Reproduction | None, true_data: Sequence[Reproduction]) -> Iterator[str]:
    """Yield a paper's section; on true data it may have run once a data set, each of which measures figures of its own."""
    shown_one = stand_in or true_data[0]
    folder = shown_one.paper if stand_in is not None else f"{shown_one.paper}{TRUE_DATA}"
    yield f"## {shown_one.title}\n"
    yield f"`{shown_one.command}`. What it ran on, and all tables: [{folder}]({FOLDER}/{folder}/tables.md).\n"
    yield from (
        f"![{name.removesuffix('.svg')}]({FOLDER}/{folder}/{name})\n"
        for name in shown_one.plots[:1]
    )
    yield "| where | what | paper | ours, stand-in | ours, paper's data | in a sentence |"
    yield "|---|---|---:|---:|---:|---|"
    other = {
        one.figure.key: one
        for each in true_data
        for one in each.figures
        if one.measured.value is not None
    }
    headlines = [one for one in shown_one.figures if one.figure.is_headline]
    reasons, notes = reasons_once([other.get(one.figure.key, one).why for one in headlines])
    for one, why in zip(headlines, reasons, strict=True):
        yield _row(
            one if stand_in is not None else None, other.get(one.figure.key), one.figure, why
        )
    yield ""
    yield from [*notes, *(f"- {note}" for note in shown_one.notes)]
    yield ""


def _row(
    stand_in: ComparedFigure | None,
    true_data: ComparedFigure | None,
    figure: PaperFigure,
    why: str,
) -> str:
    ours = [
        "" if one is None else shown(one.measured.value, figure.unit) or "–"
        for one in (stand_in, true_data)
    ]
    paper = shown(figure.value, figure.unit) or "shown only"
    unit = "" if figure.unit in ("count", "correlation", "ratio") else f", {figure.unit}"
    return f"| {figure.where} | {plain(figure.what)}{unit} | {paper} | {ours[0]} | {ours[1]} | {plain(why)} |"
