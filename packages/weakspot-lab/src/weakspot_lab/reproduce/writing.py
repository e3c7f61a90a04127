"""Writing what a protocol gave: one JSON file with everything, tables as Markdown and CSV, plots as SVG."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import ascii_lowercase

from pydantic import JsonValue

from weakspot.core.errors import ConfigError
from weakspot.core.record import Record
from weakspot.run.stage_clock import library_versions
from weakspot.store import atomic
from weakspot_lab.reproduce.figures import ComparedFigure, compare_figures, shown
from weakspot_lab.reproduce.protocol import PaperTable, Protocol, Results
from weakspot_lab.reproduce.request import ReproduceRequest

RESULTS, TABLES, FIGURES = "results.json", "tables.md", "figures.csv"
STAND_IN = "stand-in"
SMALL = "small: its figures mean nothing"
INTERVALS = (
    "In brackets: 95 % intervals by the bootstrap over worlds, people or classes; over three worlds they are little more than the "
    "range. *Shown only*: the paper gives no number in its text."
)
COLUMNS = (
    "where",
    "what",
    "unit",
    "paper",
    "ours",
    "low",
    "high",
    "difference",
    "effect",
    "why",
    "data",
)
MAX_ROWS = 24
"""A table of the paper's own form with more rows is written as CSV instead of Markdown."""
_REASON = re.compile(r", because ([^;]+?)(?=;|\.$)")


class Reproduction(Record):
    """A paper's figures beside ours, and everything that was measured.

    Args:
        paper: its short name.
        title: its title.
        command: what gives the same tables.
        is_stand_in: whether a stand-in was used.
        is_small: whether it is the small version, which only shows that everything runs.
        data_words: on what it was measured.
        seed: of the run.
        figures: paper, ours, difference, why.
        tables: tables in the paper's own form.
        plots: names of the plots.
        notes: what to know.
        key: names everything that the results depend on.
        versions: of what results can depend on.
        steps: what every step gave.
    """

    paper: str
    title: str
    command: str
    is_stand_in: bool
    is_small: bool
    data_words: str
    seed: int
    figures: tuple[ComparedFigure, ...]
    tables: tuple[PaperTable, ...]
    plots: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    key: str = ""
    versions: dict[str, str]
    steps: dict[str, dict[str, JsonValue]]

    @property
    def mark(self) -> str:
        """Return what every table says of its data."""
        small = f", {SMALL}" if self.is_small else ""
        return f"{STAND_IN}{small}" if self.is_stand_in else f"the paper's data{small}"


def reproduction_of(
    protocol: Protocol, request: ReproduceRequest, results: Results, *, key: str = ""
) -> Reproduction:
    """Put together figures, tables and results; `key` names what they depend on."""
    stated, outcome = protocol.stated, protocol.outcome
    return Reproduction(
        paper=protocol.paper,
        title=stated.title,
        command=request.command,
        is_stand_in=request.is_stand_in,
        is_small=request.is_small,
        data_words=protocol.data_words,
        seed=request.seed,
        figures=compare_figures(
            stated.figures, outcome.measured(results), is_stand_in=request.is_stand_in
        ),
        tables=tuple(outcome.tables(results)),
        plots=tuple(outcome.plots(results)),
        notes=tuple(outcome.notes(results)),
        key=key,
        versions=library_versions(),
        steps={step.name: dict(results[step.name]) for step in protocol.steps},
    )


def write_reproduction(
    found: Reproduction, plots: Mapping[str, str], folder: Path
) -> tuple[Path, ...]:
    """Write everything into a folder; the tables come first.

    Raises:
        ConfigError: if the folder cannot be written.
    """
    contents = {
        TABLES: markdown(found),
        FIGURES: figures_csv(found),
        RESULTS: found.model_dump_json(indent=1) + "\n",
        **{_csv_name(one): table_csv(one) for one in found.tables if _is_long(one)},
        **plots,
    }
    try:
        for name, text in contents.items():
            atomic.write_bytes(folder / name, text.encode())
    except OSError as error:
        raise ConfigError(
            f"The results cannot be written: {error.strerror}.", where=str(folder)
        ) from error
    return tuple(folder / name for name in contents)


def markdown(found: Reproduction) -> str:
    """Return all tables and plots as Markdown."""
    parts = [f"# {found.title}", "", f"Made by `{found.command}`. {found.data_words}", ""]
    parts += [
        f"## Paper and ours ({found.mark})",
        "",
        figure_table(found.figures),
        "",
        INTERVALS,
        "",
    ]
    parts += [f"![{name.removesuffix('.svg')}]({name})\n" for name in found.plots]
    for table in found.tables:
        parts += [f"## {table.title} ({found.mark})", "", table_markdown(table), ""]
    parts += [f"- {note}" for note in found.notes]
    return "\n".join(parts).rstrip() + "\n"


def reasons_once(sentences: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return sentences with a letter in place of every reason that several of them give, and what the letters mean.

    >>> reasons_once(["Lower, because it rains; 3 worlds.", "Higher, because it rains."])
    (['Lower (a); 3 worlds.', 'Higher (a).'], ['- (a) It rains.'])
    """
    counts = Counter(reason for one in sentences for reason in _REASON.findall(one))
    repeated = [reason for reason, n in counts.items() if n > 1]
    letters = dict(zip(repeated, ascii_lowercase, strict=False))
    shortened = [
        _REASON.sub(
            lambda found: f" ({letters[found[1]]})" if found[1] in letters else found[0], one
        )
        for one in sentences
    ]
    notes = [f"- ({letter}) {why[0].upper()}{why[1:]}." for why, letter in letters.items()]
    return shortened, notes


def figure_table(figures: Sequence[ComparedFigure]) -> str:
    """Return the figures as a Markdown table; a reason that several of them have stands below it, once."""
    reasons, notes = reasons_once([one.why for one in figures])
    lines = [
        "| where | what | paper | ours | difference | why |",
        "|---|---|---:|---:|---:|---|",
    ]
    for one, why in zip(figures, reasons, strict=True):
        figure, measured = one.figure, one.measured
        interval = (
            f" ({shown(measured.low, figure.unit)} to {shown(measured.high, figure.unit)})"
            if measured.low is not None and measured.high is not None
            else ""
        )
        paper = shown(figure.value, figure.unit) or "shown only"
        ours = f"{shown(measured.value, figure.unit)}{interval}" or "–"
        difference = "" if one.difference is None else f"{one.difference:+.{_digits(figure.unit)}f}"
        lines.append(
            f"| {figure.where} | {plain(figure.what)}{_unit(figure.unit)} | {paper} | {ours} | {difference} | {plain(why)} |"
        )
    return "\n".join([*lines, *([""] if notes else []), *notes])


def table_markdown(table: PaperTable) -> str:
    """Return one table of the paper's own form; a long one has a file of its own."""
    if _is_long(table):
        name = _csv_name(table)
        return "\n\n".join(filter(None, [f"{len(table.rows)} rows: [{name}]({name}).", table.note]))
    lines = [
        f"| {' | '.join(map(plain, table.header))} |",
        f"|---|{'---:|' * (len(table.header) - 1)}",
    ]
    lines += [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in table.rows]
    return "\n".join([*lines, *(["", table.note] if table.note else [])])


def table_csv(table: PaperTable) -> str:
    """Return a table of the paper's own form as CSV, with figures as Markdown shows them."""
    rows = [[one if isinstance(one, str) else _cell(one) for one in row] for row in table.rows]
    return _csv([table.header, *rows])


def _is_long(table: PaperTable) -> bool:
    return len(table.rows) > MAX_ROWS


def _csv_name(table: PaperTable) -> str:
    title = table.title.split(":")[0]
    return f"{re.sub('[^a-z0-9]+', '-', title.lower()).strip('-')}.csv"


def _csv(rows: Iterable[Sequence[str]]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue()


def figures_csv(found: Reproduction) -> str:
    """Return the figures as CSV."""
    rows: list[Sequence[str]] = [COLUMNS]
    for one in found.figures:
        figure, measured = one.figure, one.measured
        numbers = (figure.value, measured.value, measured.low, measured.high, one.difference)
        shown_numbers = ("" if number is None else f"{number:.6g}" for number in numbers)
        name = (figure.where, figure.what, figure.unit)
        rows.append((*name, *shown_numbers, one.effect, one.why, found.mark))
    return _csv(rows)


def plain(text: str) -> str:
    """Return a text that does not end a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")


def _cell(cell: str | float | None) -> str:
    if cell is None:
        return ""
    return plain(cell) if isinstance(cell, str) else f"{cell:.1f}"


def _digits(unit: str) -> int:
    return {"%": 1, "points": 1, "count": 0}.get(unit, 2)


def _unit(unit: str) -> str:
    return "" if unit in ("count", "correlation", "ratio") else f", {unit}"
