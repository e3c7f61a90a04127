"""Accuracy by closeness to a name, as points of a small chart.

The trade-off of repairs as an image: what strategies do to slices against what they do overall.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from weakspot.core.slices import SliceName
from weakspot.media.charts import ChartPoint, scatter
from weakspot.report.strategies import Move, StrategyComparison

WIDTH, HEIGHT, MARGIN = 320, 120, 24
FEWEST_POINTS = 2


@dataclass(frozen=True, kw_only=True)
class CurveLine:
    """One name's curve.

    Args:
        label: the name's contrast.
        is_hard: whether it names the slice, or the other end.
        points: `x,y` pairs in the chart's own units.
        values: (K, accuracy) as measured.
    """

    label: str
    is_hard: bool
    points: str
    values: tuple[tuple[int, float], ...]


@dataclass(frozen=True, kw_only=True)
class CurveChart:
    """Curves that share their axes: K samples nearest to the name on a logarithmic axis, accuracy from 0 to 100 %."""

    lines: tuple[CurveLine, ...]
    fewest: int
    most: int
    width: int = WIDTH
    height: int = HEIGHT
    margin: int = MARGIN


def curve_chart(names: Sequence[SliceName], easy_names: Sequence[SliceName]) -> CurveChart | None:
    """Return the curves of the best name at either end, None if there is nothing to draw."""
    chosen = [
        (name, is_hard)
        for ordered, is_hard in ((names, True), (easy_names, False))
        if (name := next((one for one in ordered if len(one.curve) >= FEWEST_POINTS), None))
        is not None
    ]
    if not chosen:
        return None
    counts = [count for name, _ in chosen for count, _ in name.curve]
    fewest, most = max(1, min(counts)), max(counts)
    lines = tuple(
        CurveLine(
            label=name.contrast,
            is_hard=is_hard,
            points=_points(name.curve, fewest, most),
            values=name.curve,
        )
        for name, is_hard in chosen
    )
    return CurveChart(lines=lines, fewest=fewest, most=most)


def _points(curve: Sequence[tuple[int, float]], fewest: int, most: int) -> str:
    from math import log

    span = log(most / fewest) or 1.0
    places = [
        (
            MARGIN + (WIDTH - 2 * MARGIN) * log(max(count, 1) / fewest) / span,
            MARGIN + (HEIGHT - 2 * MARGIN) * (1.0 - accuracy),
        )
        for count, accuracy in curve
    ]
    return " ".join(f"{across:.1f},{down:.1f}" for across, down in places)


def trade_off_plot(compared: StrategyComparison) -> str:
    """Return the plot as SVG text, empty if no strategy has a place in it."""
    points = [
        ChartPoint(
            name=row.title,
            across=100 * row.overall.change,
            up=100 * row.on_slices.change,
            across_interval=_span(row.overall),
            up_interval=_span(row.on_slices),
            series="baselines" if row.is_baseline else "strategies",
            is_marked=row.is_chosen,
        )
        for row in compared.points
        if row.overall is not None and row.on_slices is not None
    ]
    if not points:
        return ""
    return scatter(
        points,
        title="What repairs do to slices, against what they do overall",
        x_label="change of overall accuracy, points",
        y_label="change on slices, points",
    )


def _span(move: Move) -> tuple[float, float]:
    return 100 * move.interval.low, 100 * move.interval.high
