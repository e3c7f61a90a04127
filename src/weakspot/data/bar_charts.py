"""Bars as SVG text: what a classifier takes the images of a caption for, and where the time of a run went."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap

from weakspot.data.charts import ACCENT, FONT, INK, LETTER, PALETTE, QUIET, Axis

TARGET_COLOUR = PALETTE[1]
BAR_WIDTH, BAR_STEP, BAR_THICKNESS = 170.0, 20.0, 14.0
VALUE_WIDTH, GAP, PANEL_EDGE = 104.0, 28.0, 8.0
LINE = 16.0
MAX_NAME_LENGTH = 24


@dataclass(frozen=True, kw_only=True)
class LabelPanel:
    """The wrong labels of one caption's images.

    Args:
        title: the caption.
        n_images: how many images of it were classified.
        counts: how many of them were given each wrong label.
    """

    title: str
    n_images: int
    counts: Mapping[str, int]

    def rate(self, n_wrong: int) -> float:
        """Return a count as a share of all images, 0 without images."""
        return n_wrong / self.n_images if self.n_images else 0.0

    def most_frequent(self, most: int, *, target: str | None) -> list[tuple[str, int]]:
        """Return the most frequent wrong labels with their counts; the target is among them, in the last place if need be."""
        ranked = sorted(
            ((name, count) for name, count in self.counts.items() if count),
            key=lambda one: (-one[1], one[0]),
        )
        shown = ranked[:most]
        if target is None or any(name == target for name, _ in shown):
            return shown
        return [*shown[: most - 1], (target, self.counts.get(target, 0))]


def label_bars(panels: Sequence[LabelPanel], *, target: str | None = None, most: int = 15) -> str:
    """Return one panel a caption with a bar for each of its most frequent wrong labels, as a share of all its images.

    All panels have the same scale. Beside a bar stand its rate and count, beneath a panel the rate of all failures.

    Args:
        panels: from left to right, usually the baseline and a discovered caption.
        target: a wrong label that is looked for; it is highlighted, and shown even where it is rare or never given.
        most: labels a panel.
    """
    shown = [panel.most_frequent(most, target=target) for panel in panels]
    highest = (
        max(
            (
                panel.rate(count)
                for panel, bars in zip(panels, shown, strict=True)
                for _, count in bars
            ),
            default=0.0,
        )
        or 1.0
    )
    margin = (
        LETTER
        * min(max((len(name) for bars in shown for name, _ in bars), default=0), MAX_NAME_LENGTH)
        + 10
    )
    width = margin + BAR_WIDTH + VALUE_WIDTH
    titles = [wrap(panel.title, width=int(width / LETTER)) or [""] for panel in panels]
    top = PANEL_EDGE + LINE * max(map(len, titles), default=1) + 10
    bottom = top + BAR_STEP * max(map(len, shown), default=0) + 6
    parts: list[str] = []
    for number, (panel, lines, bars) in enumerate(zip(panels, titles, shown, strict=True)):
        left = PANEL_EDGE + number * (width + GAP)
        parts += [
            _panel_text(left, PANEL_EDGE + LINE * (row + 1) - 4, line, weight="600")
            for row, line in enumerate(lines)
        ]
        parts += _bars(panel, bars, highest=highest, target=target, corner=(left + margin, top))
        parts += [
            _panel_text(left, bottom + LINE * (row + 1), line, colour=QUIET)
            for row, line in enumerate(_beneath(panel, bars))
        ]
    across = 2 * PANEL_EDGE + len(panels) * (width + GAP) - (GAP if panels else 0.0)
    return _drawing(across, bottom + 2 * LINE + PANEL_EDGE + 4, parts)


def _bars(
    panel: LabelPanel,
    bars: Sequence[tuple[str, int]],
    *,
    highest: float,
    target: str | None,
    corner: tuple[float, float],
) -> list[str]:
    left, top = corner
    axis = f'<line x1="{left:.1f}" x2="{left:.1f}" y1="{top - 2:.1f}" y2="{top + BAR_STEP * len(bars):.1f}" stroke="{QUIET}"/>'
    parts = [axis] if bars else []
    for row, (name, count) in enumerate(bars):
        is_target = name == target
        length = max(BAR_WIDTH * panel.rate(count) / highest, 1.0 if count else 0.0)
        place, baseline = top + BAR_STEP * row + 1, top + BAR_STEP * row + 12
        colour, weight = (TARGET_COLOUR, "600") if is_target else (ACCENT, "400")
        parts.append(_panel_text(left - 6, baseline, _short(name), anchor="end", weight=weight))
        parts.append(
            f'<rect class="{"target" if is_target else "label"}" x="{left:.1f}" y="{place:.1f}" width="{length:.1f}" '
            f'height="{BAR_THICKNESS:.0f}" fill="{colour}"><title>{escape(name)}</title></rect>'
        )
        parts.append(
            _panel_text(
                left + length + 5, baseline, f"{percent(panel.rate(count))} ({count})", colour=QUIET
            )
        )
    return parts


def _beneath(panel: LabelPanel, bars: Sequence[tuple[str, int]]) -> list[str]:
    n_wrong = sum(panel.counts.values())
    lines = [
        f"{n_wrong} of {panel.n_images} images have a wrong label: {percent(panel.rate(n_wrong))}"
    ]
    n_more = sum(1 for count in panel.counts.values() if count) - sum(
        1 for _, count in bars if count
    )
    if n_more:
        n_left = n_wrong - sum(count for _, count in bars)
        lines.append(
            f"{n_left} of them in {n_more} rarer {'label' if n_more == 1 else 'labels'}, not shown"
        )
    return lines


def percent(rate: float) -> str:
    """Return a rate with two digits that say something, because failures can be very rare.

    >>> [percent(rate) for rate in (0.0, 0.0000022, 0.0064, 0.0815, 0.5, 1.0)]
    ['0 %', '0.00022 %', '0.64 %', '8.2 %', '50 %', '100 %']
    """
    share = 100 * rate
    if not share:
        return "0 %"
    n_decimals = max(1 - math.floor(math.log10(share)), 0)
    return f"{share:.{n_decimals}f} %"


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME_LENGTH else f"{name[: MAX_NAME_LENGTH - 1]}…"


def _panel_text(
    left: float,
    top: float,
    words: str,
    *,
    anchor: str = "start",
    colour: str = INK,
    weight: str = "400",
) -> str:
    where = f'x="{left:.1f}" y="{top:.1f}" text-anchor="{anchor}"'
    return f'<text {where} fill="{colour}" font-weight="{weight}">{escape(words)}</text>'


def _drawing(width: float, height: float, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="img" '
        f'aria-label="Wrong labels by caption" font-family="system-ui, sans-serif" font-size="{FONT}">'
    )
    return "\n".join([head, *parts, "</svg>"])


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
