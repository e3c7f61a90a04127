"""Charts that only the lab draws, in the frame of the product's."""

import math
from collections.abc import Mapping, Sequence

from weakspot.data.charts import (
    LEFT,
    PALETTE,
    PLOT_HEIGHT,
    PLOT_WIDTH,
    QUIET,
    TOP,
    Axis,
    drawing,
    frame,
    legend,
    plot_bottom,
    text_width,
    written,
)


def factor_axis(values: Sequence[float], length: float) -> Axis:
    """Return an axis from the smallest value to the largest, on which equal steps are equal factors."""
    known = sorted(set(values)) or [1.0]
    low, high = known[0], known[-1]
    ends = (low, high) if high > low else (low / 2, high * 2)
    ticks = tuple((one, f"{one:g}") for one in known)
    return Axis(low=ends[0], high=ends[1], length=length, ticks=ticks, is_log=True)


def bar_groups(groups: Mapping[str, Mapping[str, float]], *, title: str) -> str:
    """Return bars in 0 to 1: one group a key, one bar a series, the same series in the same colour."""
    series = list(dict.fromkeys(name for bars in groups.values() for name in bars))
    margin, width, height = text_width(list(groups)) + 12, 360.0, 14
    parts: list[str] = []
    top = 34.0
    for name, bars in groups.items():
        parts.append(written(margin - 6, top + height * len(bars) / 2 + 4, name, anchor="end"))
        for one, value in bars.items():
            colour = PALETTE[series.index(one) % len(PALETTE)]
            parts.append(
                f'<rect x="{margin:.0f}" y="{top:.0f}" width="{max(width * value, 1):.1f}" height="{height - 2}" fill="{colour}"/>'
            )
            parts.append(
                written(margin + width * value + 5, top + 10, f"{value:.2f}", colour=QUIET)
            )
            top += height
        top += 10
    for number, one in enumerate(series):
        parts.append(
            f'<rect x="{margin:.0f}" y="{top + 18 * number:.0f}" width="12" height="12" fill="{PALETTE[number % len(PALETTE)]}"/>'
        )
        parts.append(written(margin + 18, top + 10 + 18 * number, one))
    return drawing(margin + width + 64, top + 18 * len(series) + 12, title, parts)


def line_chart(
    series: Mapping[str, Sequence[tuple[float, float]]],
    *,
    title: str,
    x_label: str,
    y_label: str,
    is_log: bool = False,
) -> str:
    """Return one line a series through its (across, up) points, in a frame with axes; what cannot be drawn is left out.

    Args:
        series: points by name.
        title: above the chart.
        x_label: what the points are for.
        y_label: what was measured.
        is_log: whether equal steps across are equal factors; only positive numbers have a place on such an axis.
    """
    lines = {
        name: [one for one in points if all(map(math.isfinite, one)) and (one[0] > 0 or not is_log)]
        for name, points in series.items()
    }
    places = [one[0] for points in lines.values() for one in points]
    across = factor_axis(places, PLOT_WIDTH) if is_log else Axis.around(places, PLOT_WIDTH)
    upwards = Axis.around([one[1] for points in lines.values() for one in points], PLOT_HEIGHT)
    parts = frame(across, upwards, x_label, y_label)
    colours = {name: PALETTE[number % len(PALETTE)] for number, name in enumerate(lines)}
    for name, points in lines.items():
        corners = [
            (LEFT + across.place(left), TOP + PLOT_HEIGHT - upwards.place(high))
            for left, high in points
        ]
        path = " ".join(f"{left:.1f},{top:.1f}" for left, top in corners)
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colours[name]}" stroke-width="2"/>'
        )
        parts += [
            f'<circle cx="{left:.1f}" cy="{top:.1f}" r="3.5" fill="{colours[name]}"/>'
            for left, top in corners
        ]
    parts += legend(colours)
    return drawing(LEFT + PLOT_WIDTH + 16, plot_bottom(len(lines)), title, parts)
