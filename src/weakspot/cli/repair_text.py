"""Repairs, as the terminal shows them: one block a group, so that lines stay short however many slices there are."""

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace

from weakspot.core.advice import AdviceKind
from weakspot.core.repairs import GroupChange, GroupKind, RepairArm, RepairResult
from weakspot.core.run import RunRecord
from weakspot.report.repair_wording import fine_interval, fine_points, p_words, slice_warning
from weakspot.report.repairs import RepairSection, arms_in_order, repair_section
from weakspot.report.strategies import Move, StrategyRow, compare_strategies
from weakspot.report.wording import arm_name, percent, points

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
    for given in compared.given:
        spread = given.spread
        lines += _wrap(
            f"{given.title}, over groups by class and {given.column}: worst {100 * spread.worst_before:.0f} → "
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
    return [f"{_cut(name)}{moves}{lowest.rjust(LEVEL)}{gap.rjust(GAP)}"]


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
    yield from _ends(section)


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
    yield from _ends(replace(section, calibration=""))


def _ends(section: RepairSection) -> Iterator[str]:
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
            yield f"    {_cut(arm_name(arm.arm) + (' *' if arm.is_baseline else ''))}{_after(same)}"


def _after(change: GroupChange) -> str:
    moved = f"{fine_points(change.change)} ({fine_interval(change.interval_of_change)})"
    chance = f", {p_words(change.chance)}" if change.gained or change.lost else ""
    return f"{percent(change.accuracy_after).rjust(6)}  {_counts(change.right_after, change)}  {moved}{chance}"


def _counts(right: int, change: GroupChange) -> str:
    total = f"{change.n_samples:,}"
    return f"{right:,}".rjust(len(total)) + f" of {total}"


def _cut(name: str) -> str:
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
