"""Where the time of a run went, as bars: one a stage, one after another on one axis, with the part that was spent waiting."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from weakspot.media.axes import Axis
from weakspot.media.charts import ACCENT, FONT, INK, LETTER, QUIET

WIDTH, STEP, THICKNESS, TOP, EDGE = 460.0, 24.0, 16.0, 34.0, 12.0


@dataclass(frozen=True, kw_only=True)
class TimeBar:
    """One stage.

    Args:
        name: written before the bar.
        seconds: its length.
        waiting: share of it that was spent waiting, from 0 to 1.
        note: written behind it.
    """

    name: str
    seconds: float
    waiting: float = 0.0
    note: str = ""


def time_bars(bars: Sequence[TimeBar], *, title: str) -> str:
    """Return the stages from top to bottom, each beginning where the one before ended; what was waited for is hollow."""
    total = sum(bar.seconds for bar in bars)
    axis = Axis.around([0.0, total], WIDTH)
    margin = EDGE + LETTER * max((len(bar.name) for bar in bars), default=0) + 8
    bottom = TOP + STEP * len(bars)
    parts = [
        f'<line x1="{margin + axis.place(value):.1f}" x2="{margin + axis.place(value):.1f}" y1="{TOP - 6}" y2="{bottom}" '
        f'stroke="{QUIET}" stroke-opacity="0.3"/>'
        + _text(margin + axis.place(value), bottom + 14, f"{words} s", anchor="middle", ink=QUIET)
        for value, words in axis.ticks
    ]
    begun = 0.0
    for number, bar in enumerate(bars):
        parts += _bar(bar, begun, axis, margin, TOP + STEP * number)
        begun += bar.seconds
    longest = max((len(bar.note) for bar in bars), default=0)
    width = max(margin + WIDTH + LETTER * longest + 2 * EDGE, LETTER * len(title) * 1.2)
    height = bottom + 14 + EDGE
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="img" '
        f'aria-label="{escape(title, quote=True)}" font-family="system-ui, sans-serif" font-size="{FONT}">'
    )
    return "\n".join([head, _text(EDGE, 16, title, weight="600"), *parts, "</svg>"])


def _bar(bar: TimeBar, begun: float, axis: Axis, margin: float, top: float) -> list[str]:
    left = margin + axis.place(begun)
    length = max(axis.place(bar.seconds), 1.0)
    busy = length * (1.0 - min(max(bar.waiting, 0.0), 1.0))
    box = f'y="{top:.0f}" height="{THICKNESS:.0f}"'
    parts = [
        _text(margin - 8, top + 12, bar.name, anchor="end"),
        f'<rect x="{left:.1f}" {box} width="{length:.1f}" fill="none" stroke="{ACCENT}"/>',
        f'<rect x="{left:.1f}" {box} width="{busy:.1f}" fill="{ACCENT}"/>',
    ]
    return [*parts, _text(left + length + 6, top + 12, bar.note, ink=QUIET)]


def _text(
    left: float,
    top: float,
    words: str,
    *,
    anchor: str = "start",
    ink: str = INK,
    weight: str = "400",
) -> str:
    return (
        f'<text x="{left:.1f}" y="{top:.1f}" text-anchor="{anchor}" fill="{ink}" font-weight="{weight}">'
        f"{escape(words)}</text>"
    )
