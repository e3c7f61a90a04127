"""Runs, findings and repairs as the terminal shows them; the first answer in fifteen lines that fit 80 columns."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from weakspot.core.bounds import SliceOrder
from weakspot.core.evidence import Cause, Evidence, Verdict
from weakspot.core.repairs import GroupChange, GroupKind, RepairArm, RepairResult
from weakspot.core.run import AdviceKind, RunRecord
from weakspot.core.slices import FailureSlice, SliceName
from weakspot.report.findings import methods_of, n_tested
from weakspot.report.first_answer import (
    FirstAnswer,
    FirstClass,
    FirstFinding,
    first_answer,
    first_findings,
)
from weakspot.report.repairs import (
    Move,
    RepairSection,
    StrategyRow,
    arms_in_order,
    compare_strategies,
    fine_interval,
    fine_points,
    p_words,
    repair_section,
    slice_warning,
)
from weakspot.report.tree import TreeRow, first_rows, left_sentence, more_sentence, tree_rows
from weakspot.report.wording import (
    arm_name,
    effect_sentence,
    exact_p,
    explanation_sentence,
    groups_sentence,
    measurement_words,
    nearest_sentence,
    percent,
    points,
    title_with_method,
)
from weakspot.run.ingestion import IngestResult
from weakspot.run.methods import CHOICE_STAGE
from weakspot.run.preparation import EmbedResult

WIDTH = 100
NAME, CHANGE, LEVEL, GAP = 22, 19, 12, 9
SHOWN_GROUPS = (GroupKind.SLICE, GroupKind.OVERALL)


def repair_lines(record: RunRecord) -> str:
    """Return before and after of the chosen repair beside its baselines, and all strategies in one table if there are several."""
    if not record.repairs:
        reasons = [note.note for note in record.notes if note.class_name == "repair"]
        why = (
            " ".join(reasons)
            or "No slice was confirmed, or the classifier's last layer is not known."
        )
        return "\n".join(_wrap(f"No repair. {why}", ""))
    lines = list(_result(record.repairs[0]))
    for result in record.repairs[1:]:
        fresh = tuple(note for note in result.notes if note not in record.repairs[0].notes)
        lines += _brief(result.model_copy(update={"notes": fresh})) if result.arms else ()
    compared = comparison_lines(record.repairs)
    return "\n".join([*lines, compared] if compared else lines)


def what_to_do(record: RunRecord) -> list[str]:
    """Return what to do instead if no repair of the run was measured to help; nothing if one was."""
    if any(one.kind is AdviceKind.RETRAIN and one.is_measured for one in record.advice):
        return []
    instead = (AdviceKind.CHECK_LABELS, AdviceKind.LABEL, AdviceKind.COLLECT, AdviceKind.ACCEPT)
    best = next((one for one in record.advice if one.kind in instead), None)
    return [] if best is None else _wrap(f"Do: {best.sentence}", "")


def comparison_lines(predictions: Sequence[RepairResult]) -> str:
    """Return all strategies in one table, empty if there are not several."""
    compared = compare_strategies(predictions)
    if compared is None:
        return ""
    heading = f"Strategies on {compared.measured_on} ({compared.n_samples:,} samples), change in points with 95 % intervals:"
    titles = ("slices", "rest of class", "overall", "lowest", "gap")
    widths = (CHANGE, CHANGE, CHANGE, LEVEL, GAP)
    lines = [
        heading,
        " " * NAME
        + "".join(title.rjust(width) for title, width in zip(titles, widths, strict=True)),
    ]
    lines += [line for row in compared.rows for line in _strategy(row)]
    lines.append(
        "  > chosen   * baseline   ! more than chance (p at most 0.05, over all that was measured here)"
    )
    for title, given, spread in compared.given:
        lines += _wrap(
            f"{title}, over groups by class and {given.column}: worst {100 * spread.worst_before:.0f} → "
            f"{100 * spread.worst_after:.0f} %, overall {100 * given.overall_before:.0f} → {100 * given.overall_after:.0f} %, "
            f"gap {100 * spread.gap_before:.0f} → {100 * spread.gap_after:.0f}",
            "  ",
        )
    for row in compared.rows:
        if row.got_worse:
            lines += _wrap(
                f"{row.title} got worse, by more than chance: {', '.join(row.got_worse)}", "  "
            )
        if (
            row.rival is not None
            and row.on_slices is not None
            and row.rival[1].change >= row.on_slices.change
        ):
            far = f"{points(row.rival[1].change)} against {points(row.on_slices.change)}"
            lines += _wrap(
                f"{row.title} is no better on slices than its baseline “{arm_name(row.rival[0])}” ({far})",
                "  ",
            )
    return "\n".join(lines)


def _strategy(row: StrategyRow) -> list[str]:
    name = f"{'>' if row.is_chosen else ' '} {row.title}{' *' if row.is_baseline else ''}"
    if row.arm is None:
        return _wrap(f"{name}: {row.note}", "")
    spread = row.arm.spread
    lowest = (
        "–"
        if spread is None
        else f"{100 * spread.worst_before:.0f} → {100 * spread.worst_after:.0f} %"
    )
    gap = "–" if spread is None else f"{100 * spread.gap_before:.0f} → {100 * spread.gap_after:.0f}"
    moves = "".join(_move(one).rjust(CHANGE) for one in (row.on_slices, row.on_rest, row.overall))
    return [f"{_padded_name(name)}{moves}{lowest.rjust(LEVEL)}{gap.rjust(GAP)}"]


def _move(move: Move | None) -> str:
    if move is None:
        return "–"
    return f"{fine_points(move.change)}{'!' if move.is_certain else ''} ({fine_interval(move.interval).replace(' to ', '..')})"


def _result(result: RepairResult) -> Iterator[str]:
    section, arms = repair_section(result), arms_in_order(result)
    if not arms:
        yield from _brief(result)
        return
    warning = slice_warning(arms[0])
    yield from _wrap(warning, "") if warning else ()
    measured = f"measured on {result.measured_on.name} ({result.measured_on.n_samples:,} samples)"
    yield from _wrap(f"{section.title}, {measured}; * baseline:", "")
    for change in sorted(arms[0].changes, key=lambda one: one.kind is GroupKind.OVERALL):
        if change.kind in SHOWN_GROUPS:
            yield from _block(change, arms)
    n_slices = sum(change.kind is GroupKind.SLICE for change in arms[0].changes)
    n_told = n_slices + any(
        change.kind is GroupKind.OVERALL and change.n_samples > 0 for change in arms[0].changes
    )
    for sentence in (*section.sentences[n_told + bool(warning) :], *section.aftermath):
        yield from _wrap(sentence)
    yield from _repair_ends(section)


def _brief(result: RepairResult) -> Iterator[str]:
    """Yield what the table of strategies does not say of a result."""
    section = repair_section(result)
    if result.needs:
        yield f"{section.title}:"
        for sentence in section.sentences:
            yield from _wrap(sentence)
    elif not section.arms:
        yield from _wrap(f"{section.title}. {' '.join(section.sentences)}", "")
    elif section.labelling or section.notes or section.files:
        yield f"{section.title}:"
    yield from _repair_ends(replace(section, calibration=""))


def _repair_ends(section: RepairSection) -> Iterator[str]:
    for sentence in (section.calibration, section.labelling, *section.notes):
        if sentence:
            yield from _wrap(sentence)
    if section.files:
        yield from _wrap(f"Files: {', '.join(section.files)}")


def _block(change: GroupChange, arms: Sequence[RepairArm]) -> Iterator[str]:
    groups = "" if change.n_groups is None else f" in {change.n_groups:,} groups"
    yield from _wrap(f"{change.group} ({change.n_samples:,} samples{groups})")
    if not change.n_samples:
        yield "    no such samples were measured"
        return
    low, high = 100 * change.interval_before.low, 100 * change.interval_before.high
    before = f"{percent(change.accuracy_before).rjust(6)}  {_counts(change.right_before, change)}"
    yield f"    {'before':<{NAME}}{before}  interval {low:.0f} to {high:.0f} %"
    for arm in arms:
        same = arm.change_of(change.kind, change.group)
        if same is not None:
            yield f"    {_padded_name(arm_name(arm.arm) + (' *' if arm.is_baseline else ''))}{_after(same)}"


def _after(change: GroupChange) -> str:
    moved = f"{fine_points(change.change)} ({fine_interval(change.interval_of_change)})"
    chance = f", {p_words(change.chance)}" if change.gained or change.lost else ""
    return f"{percent(change.accuracy_after).rjust(6)}  {_counts(change.right_after, change)}  {moved}{chance}"


def _counts(right: int, change: GroupChange) -> str:
    total = f"{change.n_samples:,}"
    return f"{right:,}".rjust(len(total)) + f" of {total}"


def _padded_name(name: str) -> str:
    return name.ljust(NAME) if len(name) <= NAME else f"{name[: NAME - 1]}…"


def _wrap(text: str, indent: str = "  ") -> list[str]:
    """Return text in lines that fit; a number keeps its percent sign."""
    joined = text.replace(" %", "\u00a0%")
    lines = textwrap.wrap(
        joined,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_on_hyphens=False,
    )
    return [line.replace("\u00a0%", " %") for line in lines]


MAX_REFUSED = 12
MAX_DETAILED = 3
GROUPS_STAGE = "groups"


def candidates(record: RunRecord) -> str:
    """Return what was found on the discovery half, with the warning that nothing is confirmed."""
    lines = [
        *_classifier_line(record),
        *_stage_lines(record, CHOICE_STAGE),
        f"{len(record.slices)} candidate slices, none confirmed yet (next: weakspot verify):",
    ]
    lines += [
        f"  {slice_.title}  (strength {_number(slice_.strength)}, {slice_.n_found} members)"
        for slice_ in record.slices
    ]
    return "\n".join([*lines, *_notes(record)])


def findings(
    record: RunRecord,
    *,
    order: SliceOrder = SliceOrder.BOTH,
    has_all: bool = False,
) -> str:
    """Return the confirmed slices, how many others were tested, and of how many candidates they were chosen.

    Args:
        record: the run.
        order: by what slices are ordered.
        has_all: whether all confirmed slices are shown, not only those to begin with.
    """
    rows = tree_rows(record, order)
    n_explained = sum(row.is_explained for row in rows)
    explained = f", {n_explained} of them explained by a stronger one" if n_explained else ""
    head = f"{len(rows)} of {n_tested(record)} tested slices confirmed{explained}:"
    lines = [
        *_classifier_line(record),
        *_stage_lines(record, CHOICE_STAGE),
        *_stage_lines(record, GROUPS_STAGE),
        *_methods(record),
        head,
    ]
    shown = rows if has_all else first_rows(rows)
    if len(rows) > 1:
        lines += _tree(record, rows, shown)
    for row in shown if has_all else shown[:MAX_DETAILED]:
        lines += (
            [_explain(row.slice_, row.evidence, record)]
            if row.is_explained
            else list(_finding_lines(row.slice_, row.evidence, record))
        )
    # Folds find the same slice again; each copy stands with the slice it equals, under "also found as".
    refused = [
        entry
        for entry in record.evidence
        if entry.verdict is not Verdict.CONFIRMED and entry.same_as is None
    ]
    lines += [
        _refused(entry, record)
        for entry in sorted(refused, key=lambda entry: (entry.q_value, entry.p_value))[:MAX_REFUSED]
    ]
    if len(refused) > MAX_REFUSED:
        lines.append(f"  not published: {len(refused) - MAX_REFUSED} more, see the report")
    return "\n".join([*lines, *_notes(record)])


def _tree(record: RunRecord, rows: Sequence[TreeRow], shown: Sequence[TreeRow]) -> Iterator[str]:
    for row in shown:
        arrow = "-> " if row.depth else ""
        yield f"  {'  ' * row.depth}{arrow}{row.slice_.class_name}: {row.sentence}"
    if more := more_sentence(rows, shown):
        yield f"  {more}: --all shows them"
    for tree in record.trees:
        yield f"  {left_sentence(tree)}"


def _methods(record: RunRecord) -> Iterator[str]:
    for one in methods_of(record):
        note = f" {one.note}" if one.note else ""
        looked_at = f"{one.method}: {one.n_considered:,} candidates looked at"
        yield f"{looked_at}, {one.n_found:,} put forward, {one.n_tested:,} passed the screen.{note}"


def _explain(slice_: FailureSlice, evidence: Evidence, record: RunRecord) -> str:
    if evidence.explained is None:
        return ""
    why = explanation_sentence(
        evidence.explained, record.slice_by_id(evidence.explained.slice_id).title
    )
    return f"  no finding of its own: {slice_.title}  (by {slice_.method}). {why}"


def _refused(entry: Evidence, record: RunRecord) -> str:
    slice_ = record.slice_by_id(entry.slice_id)
    why = f", {exact_p(entry.q_value, name='q')}" if entry.verdict is Verdict.NOT_CONFIRMED else ""
    return f"  not published: {slice_.title} ({slice_.method}; {entry.verdict}{why})"


def _finding_lines(slice_: FailureSlice, evidence: Evidence, record: RunRecord) -> Iterator[str]:
    inside, outside = evidence.interval_inside, evidence.interval_outside
    yield f"  {slice_.title}  (by {slice_.method})"
    sure = [name for name in slice_.names if not name.is_unsure]
    if sure:
        yield f"    in words: {', '.join(name.phrase + _doubt(name) for name in sure[:3])}"
    if slice_.nearest_words:
        yield f"    {nearest_sentence(slice_)}"
    yield (
        f"    wrong on {percent(evidence.rate_inside)} of {evidence.n_inside} "
        f"(interval {percent(inside.low)} to {percent(inside.high)}), "
        f"against {percent(evidence.rate_outside)} of the other {evidence.n_outside} "
        f"({percent(outside.low)} to {percent(outside.high)}); {exact_p(evidence.p_value)}, {exact_p(evidence.q_value, name='q')}"
    )
    if groups := groups_sentence(evidence):
        yield f"    groups:{groups}"
    if evidence.effect is not None:
        yield f"    how much: {effect_sentence(evidence)}"
    yield from _reasons(evidence)
    for measured in evidence.elsewhere:
        yield f"    elsewhere, {measurement_words(measured)}"
    copies = [
        title_with_method(record.slice_by_id(entry.slice_id))
        for entry in record.evidence
        if entry.same_as == slice_.slice_id
    ]
    same = [one for one in dict.fromkeys(copies) if one != title_with_method(slice_)]
    if same:
        yield f"    also found as: {', '.join(same)}"


def _reasons(evidence: Evidence) -> Iterator[str]:
    cause, labels = evidence.cause, evidence.labels
    if labels is not None and labels.is_flagged:
        yield f"    check the labels: {labels.sentence}"
    if cause is not None and cause.sentence:
        named = evidence.named_cause
        is_known = named is not Cause.UNKNOWN
        yield f"    why: {'evidence points to: ' if is_known else ''}{named}. {cause.sentence}"
    if cause is not None and cause.confused_with is not None and cause.confused_with.is_real:
        yield f"    taken for: {cause.confused_with.sentence}"


def _doubt(name: SliceName) -> str:
    said = f" ({name.said_of})" if name.said_of else ""
    return said + (f" (doubtful: {name.witness or 'a second check'})" if name.is_doubtful else "")


def whole_run(
    record: RunRecord, *, order: SliceOrder = SliceOrder.BOTH, has_all: bool = False
) -> str:
    """Return findings and repairs of a run."""
    return f"{findings(record, order=order, has_all=has_all)}\n{repair_lines(record)}"


def _classifier_line(record: RunRecord) -> list[str]:
    facts = record.classifier
    if facts is None:
        return []
    rate = percent(facts.n_failed / facts.n_samples) if facts.n_samples else "0 %"
    return [
        f"The classifier fails on {facts.n_failed} of {facts.n_samples} samples looked at ({rate}); failure: {record.criterion}."
    ]


def _stage_lines(record: RunRecord, name: str) -> list[str]:
    """Return what a stage said the last time: what methods use, or which images are near-identical."""
    return [stage.summary for stage in record.stages if stage.stage == name][-1:]


def _notes(record: RunRecord) -> list[str]:
    return [f"  note on {note.class_name}: {note.note}" for note in record.notes]


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"


def ingest_lines(summary: IngestResult) -> list[str]:
    splits = ", ".join(f"{count} {name}" for name, count in summary.per_split.items() if count)
    lines = [
        f"{summary.n_samples} samples of {len(summary.class_names)} classes ({splits}) from {summary.source}."
    ]
    if summary.n_unlabelled:
        lines.append(f"  {summary.n_unlabelled} of them have no label.")
    if summary.n_quarantined:
        reasons = ", ".join(f"{count} {reason}" for reason, count in summary.quarantined.items())
        lines.append(f"  {summary.n_quarantined} samples are in quarantine: {reasons}.")
    if summary.n_duplicated:
        lines.append(
            f"  {summary.n_duplicated} images occur more than once, {summary.n_across_splits} of them in different splits "
            f"and {summary.n_conflicting} with different labels."
        )
    if summary.n_groups:
        across = (
            f" {summary.n_groups_across_splits} groups are in several splits."
            if summary.n_groups_across_splits
            else ""
        )
        lines.append(
            f"  {summary.n_in_groups} images belong to {summary.n_groups} groups, which are counted, not their images.{across}"
        )
    notes = (summary.group_note, summary.burst_note, summary.source_note)
    lines += [f"  {note}" for note in notes if note]
    if summary.n_reused:
        changed = (
            f", {summary.n_changed} of them because they may have changed"
            if summary.n_changed
            else ""
        )
        lines.append(
            f"  {summary.n_read} images were read{changed}; {summary.n_reused} have not changed since last time."
        )
    if summary.changed_meanwhile:
        lines.append(
            "  The source changed while it was read. Run again: only what changed is read."
        )
    return lines


def embed_lines(summary: EmbedResult) -> list[str]:
    lines = [
        f"{summary.n_embeddings} embeddings, {summary.n_new_embeddings} of them new. {summary.reason}"
    ]
    if summary.classifier_id:
        lines.append(
            f"{summary.n_predictions} predictions of {summary.classifier_id}, {summary.n_new_predictions} of them new."
        )
    if summary.n_unreadable:
        lines.append(
            f"{summary.n_unreadable} images could not be read; they are tried again next time."
        )
    return lines


MAX_LINES = 15
WIDEST = 100
PIPED = 80
NARROWEST = 40
MAX_NAME_LENGTH = 28
MAX_ANSWER_LENGTH = 20
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
    ends = list(_answer_ends(project, report, wide))
    for room in ROOMS:
        lines = [*_body(answer, room, wide), *ends]
        if len(lines) <= MAX_LINES:
            break
    return lines


def _body(answer: FirstAnswer, room: Room, width: int) -> Iterator[Text]:
    yield from _paragraph("", answer.headline, width, most=2, style=LABEL)
    for problem in answer.problems:
        said = f"{problem.sentence} {problem.fix}".strip()
        yield from _paragraph("PROBLEM  ", said, width, most=room.each, style=ALARM)
        if problem.settings_line:
            yield Text(f"  weakspot.toml: {_clean(problem.settings_line)}")
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


def _table(answer: FirstAnswer, most: int, width: int) -> Iterator[Text]:
    rows = answer.classes[:most]
    if not rows:
        return
    corner = f"worst {len(rows)} of {answer.n_classes:,}" if len(rows) < answer.n_classes else ""
    longest = max(cell_len(_clean(row.name)) for row in rows)
    name = max(min(longest, MAX_NAME_LENGTH, width // 3), len(corner))
    counts = [f"{row.right.count:,} of {row.right.total:,}" for row in rows]
    share = max(map(len, counts))
    answers = [_answers(row, width - name - share - 14) for row in rows]
    note = "mostly taken for" if any(answers) else ""
    yield Text(f"  {corner.ljust(name)}  {'right'.ljust(share + 10)}{note}".rstrip(), style="dim")
    for row, figure, taken in zip(rows, counts, answers, strict=True):
        mark = "! " if row.is_failing else "  "
        start = f"{mark}{set_cell_size(_cut_to_width(row.name, name), name)}  {figure.rjust(share)}"
        line = f"{start} {f'{100 * row.right.value:.0f} %'.rjust(6)}   {taken}".rstrip()
        yield Text(line, style=ALARM if row.is_failing else "")


def _answers(row: FirstClass, width: int) -> str:
    """Return the wrong answers that fit beside a class."""
    shown = ""
    for answer in row.taken_for:
        one = f"{_cut_to_width(answer.name, MAX_ANSWER_LENGTH)} {answer.number:,}"
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
        yield from _first_finding(number, one, width, most=room.each)


def _first_finding(number: int, one: FirstFinding, width: int, *, most: int) -> Iterator[Text]:
    label = f"{number} "
    if not one.title:
        yield from _paragraph(label, one.sentence, width, most=most)
        return
    room = width - len(label) - cell_len(one.sentence) - 3
    text = f"{_cut_to_width(one.title, max(room, SHORTEST_TITLE))} - {one.sentence}"
    yield from _paragraph(label, text, width, most=1)


def _answer_ends(project: Path, report: Path | None, width: int) -> Iterator[Text]:
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
        lines = [
            *lines[: most - 1],
            _cut_to_width(rest, width - (indent if most > 1 else len(label))),
        ]
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


def _cut_to_width(text: str, width: int) -> str:
    """Return text in at most so many cells, with an ellipsis if something is missing."""
    clean = _clean(text)
    if cell_len(clean) <= width:
        return clean
    return set_cell_size(clean, max(1, width - 1)).rstrip() + "…"


def _clean(text: str) -> str:
    """Return text in one line without anything that a terminal would take for a command."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(shown.split())
