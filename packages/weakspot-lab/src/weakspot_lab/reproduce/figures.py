"""What a paper states, what was measured here, and one sentence on how the two compare."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from weakspot.core.errors import DataError
from weakspot.core.record import Record

FILE = "figures.json"
NEAR = {"%": 5.0, "points": 2.0, "ratio": 0.25, "correlation": 0.1, "share": 0.05, "count": 0.5}
"""How far two figures may lie apart and still be called about the same; the last for all other units."""


class PaperFigure(Record):
    """One figure of a paper.

    Args:
        key: its name, unique in the paper.
        where: table, figure or section.
        what: what it is, in words.
        value: the number; None where the paper only shows or says it.
        unit: %, points, ratio, correlation, share, count.
        better: which direction is better, `higher` or `lower`; empty where neither is.
        is_headline: whether it stands on the page of all papers.
    """

    key: str
    where: str
    what: str
    value: float | None = None
    unit: str = "%"
    better: Literal["higher", "lower", ""] = "higher"
    is_headline: bool = False


class PaperFigures(Record):
    """The figures of a paper.

    Args:
        paper: its short name.
        title: its title.
        figures: in the paper's order.
    """

    paper: str
    title: str
    figures: tuple[PaperFigure, ...]


class Measured(Record):
    """What was measured here for a figure of a paper.

    Args:
        value: in the paper's unit; None if it could not be measured.
        low: lower end of its interval, 95 %.
        high: upper end.
        beside: the figure of what the paper compares it with, measured in the same way.
        beside_name: what that is.
        gain_low: lower end of the interval of value minus beside.
        gain_high: upper end.
        if_higher: why it is higher than in the paper; told only where it is.
        if_lower: why it is lower; told only where it is.
        if_absent: why the paper's effect does not appear; told only where it does not.
        note: what else to know, or why there is no value.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    beside: float | None = None
    beside_name: str = ""
    gain_low: float | None = None
    gain_high: float | None = None
    if_higher: str = ""
    if_lower: str = ""
    if_absent: str = ""
    note: str = ""


class ComparedFigure(Record):
    """A figure of a paper beside ours.

    Args:
        figure: the paper's.
        measured: ours.
        difference: ours minus the paper's; None if one of them is not known.
        effect: whether what the paper claims shows here: yes, unclear, no; empty where nothing is compared.
        why: one sentence.
    """

    figure: PaperFigure
    measured: Measured
    difference: float | None
    effect: Literal["yes", "unclear", "no", ""]
    why: str


def read_figures(paper: str) -> PaperFigures:
    """Return what a paper states.

    Raises:
        DataError: if its file cannot be read, or names a figure twice.
    """
    path = Path(__file__).parent / paper / FILE
    try:
        found = PaperFigures.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, ValidationError) as error:
        raise DataError("The figures of the paper cannot be read.", where=FILE) from error
    keys = [one.key for one in found.figures]
    if len(set(keys)) < len(keys):
        raise DataError("A figure of the paper is named twice.", where=FILE, given=keys)
    return found


def compare_figures(
    figures: Sequence[PaperFigure], measured: Mapping[str, Measured], *, is_stand_in: bool
) -> tuple[ComparedFigure, ...]:
    """Put every figure of a paper beside what was measured; what was not measured says so."""
    return tuple(
        compare_figure(
            one,
            measured.get(one.key, Measured(note="Not measured here.")),
            is_stand_in=is_stand_in,
        )
        for one in figures
    )


def compare_figure(figure: PaperFigure, measured: Measured, *, is_stand_in: bool) -> ComparedFigure:
    """Put one figure of a paper beside what was measured."""
    value = measured.value
    if value is None or not math.isfinite(value):
        why = measured.note or "Not measured here."
        measured = measured.model_copy(update={"value": None})
        return ComparedFigure(figure=figure, measured=measured, difference=None, effect="", why=why)
    difference = None if figure.value is None else value - figure.value
    effect = effect_of(figure, measured)
    words = [
        _effect_words(figure, measured, effect),
        _distance_words(figure, measured, is_stand_in=is_stand_in),
    ]
    words.append(measured.note.rstrip("."))
    sentence = "; ".join(filter(None, words)) or "Measured as the paper describes it"
    return ComparedFigure(
        figure=figure,
        measured=measured,
        difference=difference,
        effect=effect,
        why=f"{sentence[0].upper()}{sentence[1:]}.",
    )


def effect_of(figure: PaperFigure, measured: Measured) -> Literal["yes", "unclear", "no", ""]:
    """Return whether ours is better than what the paper compares with, beyond its interval if there is one."""
    gain = _gain(figure, measured)
    if gain is None:
        return ""
    if gain <= 0:
        return "no"
    ends = [measured.gain_low, measured.gain_high]
    known = [one for one in ends if one is not None]
    sign = -1.0 if figure.better == "lower" else 1.0
    return "unclear" if known and min(sign * one for one in known) <= 0 else "yes"


def _gain(figure: PaperFigure, measured: Measured) -> float | None:
    if measured.beside is None or measured.value is None or not figure.better:
        return None
    gain = measured.value - measured.beside
    return -gain if figure.better == "lower" else gain


def _effect_words(figure: PaperFigure, measured: Measured, effect: str) -> str:
    if not effect or measured.value is None or measured.beside is None:
        return ""
    difference = measured.value - measured.beside
    amount = amount_words(abs(difference), figure.unit)
    side = "higher" if difference > 0 else "lower"
    beside = (
        f"the same as {measured.beside_name}"
        if difference == 0
        else f"{amount} {side} than {measured.beside_name}"
    )
    if effect == "yes":
        return f"the paper's effect appears: {beside}"
    if effect == "unclear":
        return f"in the paper's direction, but not beyond chance: {beside}"
    because = f", because {measured.if_absent}" if measured.if_absent else ""
    return f"the paper's effect does not appear: {beside}{because}"


def _distance_words(figure: PaperFigure, measured: Measured, *, is_stand_in: bool) -> str:
    if figure.value is None or measured.value is None:
        return ""
    difference = measured.value - figure.value
    near = NEAR.get(figure.unit, NEAR["count"])
    if abs(difference) <= (near * abs(figure.value) if figure.unit == "ratio" else near):
        return "about the paper's figure"
    side, because = (
        ("higher", measured.if_higher) if difference > 0 else ("lower", measured.if_lower)
    )
    if because:
        return f"{side} than in the paper, because {because}"
    other = ", on another problem" if is_stand_in else ""
    return f"{side} than in the paper{other}"


def amount_words(value: float, unit: str) -> str:
    """Return an amount in words.

    >>> amount_words(4.21, "%"), amount_words(0.337, "correlation"), amount_words(3.0, "ratio")
    ('4.2 points', '0.34', '3.00')
    """
    if unit in ("%", "points"):
        return f"{value:.1f} points"
    return f"{value:.0f}" if unit == "count" and value == round(value) else f"{value:.2f}"


def shown(value: float | None, unit: str) -> str:
    """Return a figure as tables show it; empty for none.

    >>> shown(88.94, "%"), shown(0.951, "correlation"), shown(31.0, "count"), shown(None, "%")
    ('88.9', '0.95', '31', '')
    """
    if value is None:
        return ""
    if unit in ("%", "points"):
        return f"{value:.1f}"
    return f"{value:.0f}" if unit == "count" and value == round(value) else f"{value:.2f}"
