"""The first answer as the terminal shows it: fifteen lines that fit 80 columns, with colour where there is a terminal."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from weakspot.core.ordering import SliceOrder
from weakspot.core.preflight import PreflightCheck
from weakspot.core.run import RunRecord
from weakspot.report.first_answer import (
    FirstAnswer,
    FirstClass,
    FirstFinding,
    first_answer,
    first_findings,
)

MOST_LINES = 15
WIDEST = 100
PIPED = 80
NARROWEST = 40
LONGEST_NAME = 28
LONGEST_ANSWER = 20
SHORTEST_TITLE = 20
ALARM, LABEL = "bold red", "bold"


@dataclass(frozen=True, kw_only=True)
class Room:
    """How much of an answer is shown: classes, findings, things to do, and lines for each sentence."""

    classes: int
    findings: int
    to_do: int
    each: int


ROOMS = tuple(
    Room(classes=classes, findings=findings, to_do=to_do, each=each)
    for classes, findings, to_do, each in (
        (5, 5, 3, 3),
        (5, 4, 2, 3),
        (4, 3, 2, 3),
        (3, 3, 2, 3),
        (3, 2, 2, 3),
        (3, 2, 1, 3),
        (3, 2, 1, 2),
        (2, 2, 1, 2),
        (2, 1, 1, 2),
        (1, 1, 1, 1),
    )
)


def show_run(
    record: RunRecord,
    project: Path,
    *,
    report: Path | None = None,
    order: SliceOrder = SliceOrder.BOTH,
) -> None:
    """Write the first answer of a run to the output stream."""
    console = Console(highlight=False, soft_wrap=True)
    answer = first_answer(record, order=order)
    # Where nobody sees it at once, the terminal that the command was typed in says nothing of the reader's.
    width = console.width if console.is_terminal else PIPED
    for line in answer_lines(answer, width=width, project=project, report=report):
        console.print(line)


def answer_lines(
    answer: FirstAnswer, *, width: int, project: Path, report: Path | None
) -> list[Text]:
    """Return the lines, as many details as fit; none is wider than the terminal but for paths, which are never cut."""
    wide = max(NARROWEST, min(width, WIDEST))
    ends = list(_ends(project, report, wide))
    for room in ROOMS:
        lines = [*_body(answer, room, wide), *ends]
        if len(lines) <= MOST_LINES:
            break
    return lines


def _body(answer: FirstAnswer, room: Room, width: int) -> Iterator[Text]:
    yield from _paragraph("", answer.headline, width, most=2, style=LABEL)
    for problem in answer.problems:
        yield from _problem(problem, width, most=room.each)
    yield from _table(answer, room.classes, width)
    yield from _findings(answer, room, width)
    for number, one in enumerate(answer.to_do[: room.to_do]):
        label = "    " if number else "DO  "
        yield from _paragraph(label, one.sentence, width, most=room.each, indent=6)
    if answer.repaired:
        yield from _paragraph("REPAIR  ", answer.repaired, width, most=room.each)
    if answer.not_confirmed:
        yield from _paragraph("NOT CONFIRMED  ", answer.not_confirmed, width, most=1)
    if answer.checks:
        yield from _paragraph("CHECKS  ", answer.checks, width, most=min(room.each, 2))


def _problem(problem: PreflightCheck, width: int, *, most: int) -> Iterator[Text]:
    said = f"{problem.sentence} {problem.fix}".strip()
    yield from _paragraph("PROBLEM  ", said, width, most=most, style=ALARM)
    if problem.settings_line:
        yield Text(f"  weakspot.toml: {_clean(problem.settings_line)}")


def _table(answer: FirstAnswer, most: int, width: int) -> Iterator[Text]:
    rows = answer.classes[:most]
    if not rows:
        return
    corner = f"worst {len(rows)} of {answer.n_classes:,}" if len(rows) < answer.n_classes else ""
    longest = max(cell_len(_clean(row.name)) for row in rows)
    name = max(min(longest, LONGEST_NAME, width // 3), len(corner))
    counts = [f"{row.right.count:,} of {row.right.total:,}" for row in rows]
    share = max(map(len, counts))
    answers = [_answers(row, width - name - share - 14) for row in rows]
    note = "mostly taken for" if any(answers) else ""
    yield Text(f"  {corner.ljust(name)}  {'right'.ljust(share + 10)}{note}".rstrip(), style="dim")
    for row, figure, taken in zip(rows, counts, answers, strict=True):
        mark = "! " if row.is_failing else "  "
        start = f"{mark}{_fit(row.name, name)}  {figure.rjust(share)}"
        line = f"{start} {f'{100 * row.right.value:.0f} %'.rjust(6)}   {taken}".rstrip()
        yield Text(line, style=ALARM if row.is_failing else "")


def _answers(row: FirstClass, width: int) -> str:
    """Return the wrong answers that fit beside a class."""
    shown = ""
    for answer in row.taken_for:
        one = f"{_cut(answer.name, LONGEST_ANSWER)} {answer.number:,}"
        longer = f"{shown}, {one}" if shown else one
        if cell_len(longer) > width:
            break
        shown = longer
    return shown


def _findings(answer: FirstAnswer, room: Room, width: int) -> Iterator[Text]:
    shown = first_findings(answer.findings, room.findings)
    some = f"{len(shown)} of {answer.n_findings:,}, " if len(shown) < answer.n_findings else ""
    note = f"({some}{answer.findings_note})" if shown else answer.findings_note
    yield from _paragraph("FINDINGS  ", note, width, most=1, style=LABEL)
    for number, one in enumerate(shown, start=1):
        yield from _finding(number, one, width, most=room.each)


def _finding(number: int, one: FirstFinding, width: int, *, most: int) -> Iterator[Text]:
    label = f"{number} "
    if not one.title:
        yield from _paragraph(label, one.sentence, width, most=most)
        return
    room = width - len(label) - cell_len(one.sentence) - 3
    text = f"{_cut(one.title, max(room, SHORTEST_TITLE))} - {one.sentence}"
    yield from _paragraph(label, text, width, most=1)


def _ends(project: Path, report: Path | None, width: int) -> Iterator[Text]:
    following = f"Next: weakspot serve -p {_short(project)}"
    written = "" if report is None else f"Report: {_short(report)}"
    beside = f"{following}    {written}".rstrip()
    for line in (beside,) if cell_len(beside) <= width else (following, written):
        yield Text(line)


def _short(path: Path) -> str:
    """Return a path as seen from here, if it lies below."""
    resolved, here = path.resolve(), Path.cwd().resolve()
    shown = resolved.relative_to(here) if resolved.is_relative_to(here) else path
    return f"'{shown}'" if " " in str(shown) else str(shown)


def _paragraph(
    label: str, text: str, width: int, *, most: int, style: str = "", indent: int = 0
) -> Iterator[Text]:
    """Yield a sentence in at most so many lines, the later ones indented; what does not fit ends in an ellipsis."""
    indent = indent or min(len(label), 4) or 2
    lines = _fold(_clean(text), first=width - len(label), later=width - indent)
    if len(lines) > most:
        rest = " ".join(lines[most - 1 :])
        lines = [*lines[: most - 1], _cut(rest, width - (indent if most > 1 else len(label)))]
    for number, line in enumerate(lines):
        if number:
            yield Text(" " * indent + line, style=style)
        else:
            yield Text.assemble((label, style or LABEL), (line, style))


def _fold(text: str, *, first: int, later: int) -> list[str]:
    """Return text in lines of so many cells; a number keeps its percent sign, a word that is too long is broken."""
    lines: list[str] = [""]
    for word in text.replace(" %", "\u00a0%").split(" "):
        room = first if len(lines) == 1 else later
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if cell_len(longer) <= room:
            lines[-1] = longer
            continue
        if lines[-1]:
            lines.append("")
            room = later
        parts = list(_pieces(word, room))
        lines[-1:] = parts
    return [line.replace("\u00a0", " ") for line in lines]


def _pieces(word: str, room: int) -> Iterator[str]:
    while cell_len(word) > room:
        piece = set_cell_size(word, room).rstrip(" ")
        yield piece
        word = word[len(piece) :]
    yield word


def _cut(text: str, width: int) -> str:
    """Return text in at most so many cells, with an ellipsis if something is missing."""
    clean = _clean(text)
    if cell_len(clean) <= width:
        return clean
    return set_cell_size(clean, max(1, width - 1)).rstrip() + "…"


def _fit(text: str, width: int) -> str:
    return set_cell_size(_cut(text, width), width)


def _clean(text: str) -> str:
    """Return text in one line without anything that a terminal would take for a command."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(shown.split())
