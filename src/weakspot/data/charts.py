"""Small charts as SVG text: they need no library, scale, print, and go into a page or a file of their own.

Colours come from CSS variables where a page defines them (`--ink`, `--quiet`, `--accent`), so that dark pages stay readable.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap


@dataclass(frozen=True, kw_only=True)
class Axis:
    """Where values are along a length in pixels.

    Args:
        low: the value at the start.
        high: the value at the end.
        length: from start to end, in pixels.
        ticks: values to mark, and how they are written.
        is_log: whether equal steps are equal factors.
    """

    low: float
    high: float
    length: float
    ticks: tuple[tuple[float, str], ...]
    is_log: bool = False

    @classmethod
    def around(cls, values: Sequence[float], length: float) -> "Axis":
        """Return an axis from one round number to another that holds all values."""
        known = [value for value in values if math.isfinite(value)] or [0.0, 1.0]
        low, high = min(known), max(known)
        if high - low <= 1e-9 * max(abs(low), abs(high), 1.0):
            low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
        rough = (high - low) / 5
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(power * times for times in (1, 2, 5, 10) if power * times >= rough * (1 - 1e-9))
        start, end = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        shown = [
            round(start + number * step, digits)
            for number in range(round((end - start) / step) + 1)
        ]
        # Adding zero turns a negative zero, which would be written with a sign, into a plain one.
        ticks = tuple((one, f"{one + 0.0:.{digits}f}") for one in shown)
        return cls(low=start, high=end, length=length, ticks=ticks)

    def place(self, value: float) -> float:
        low, high, here = (
            map(math.log, (self.low, self.high, value))
            if self.is_log
            else (self.low, self.high, value)
        )
        return self.length * (here - low) / (high - low)


INK, QUIET, ACCENT = "var(--ink, #1c1c1c)", "var(--quiet, #767676)", "var(--accent, #1f5fa8)"
PALETTE = (
    "#1f5fa8",
    "#c4572a",
    "#3a8a4d",
    "#8a4fa0",
    "#b08a1e",
    "#50808e",
    "#a83a5b",
    "#6a6a6a",
    "#2aa198",
    "#7a5c3a",
)
FONT = 12
CELL = 46
LETTER = 6.6
BOLD_LETTER = 7.6
PLOT_WIDTH, PLOT_HEIGHT = 400.0, 240.0
LEFT, TOP = 64.0, 34.0
SLANT, DARK_FROM = 0.87, 0.55
TARGET_COLOUR = PALETTE[1]
BAR_WIDTH, BAR_STEP, BAR_THICKNESS = 170.0, 20.0, 14.0
VALUE_WIDTH, GAP, EDGE, LINE = 104.0, 28.0, 8.0, 16.0
MAX_NAME_LENGTH = 24
TIME_WIDTH, TIME_STEP, TIME_THICKNESS = 460.0, 24.0, 16.0


def heat_map(
    rows: Sequence[str],
    values: Sequence[Sequence[float]],
    *,
    title: str,
    columns: Sequence[str] | None = None,
) -> str:
    """Return a table of values in 0 to 1, darker for larger, with the number in every cell.

    Args:
        rows: names at the left.
        values: one line a row.
        title: above the table.
        columns: names beneath, those of the rows if none are given.
    """
    beneath = rows if columns is None else columns
    # Names beneath are slanted to the left, so a long one may begin before the first cell.
    slanted = [
        SLANT * LETTER * len(name) * 0.6 - CELL * number for number, name in enumerate(beneath)
    ]
    margin = max(text_width(rows) + 12, *slanted, 0.0)
    bottom = 30 + CELL * len(rows)
    parts = [
        written(margin - 6, 30 + CELL * (number + 0.5) + 4, name, anchor="end")
        for number, name in enumerate(rows)
    ]
    parts += [
        written(margin + CELL * (number + 0.5), bottom + 16, name, turned=True)
        for number, name in enumerate(beneath)
    ]
    for row, line in enumerate(values):
        middle = 30 + CELL * (row + 0.5) + 4
        for column, value in enumerate(line):
            left = margin + CELL * column
            ink = "#ffffff" if value > DARK_FROM else "#1c1c1c"
            parts.append(
                f'<rect x="{left:.0f}" y="{30 + CELL * row}" width="{CELL - 2}" height="{CELL - 2}" fill="{_shade(value)}"/>'
            )
            parts.append(
                written(left + CELL / 2 - 1, middle, f"{value:.2f}", anchor="middle", colour=ink)
            )
    height = bottom + SLANT * text_width(beneath) + 28
    return drawing(margin + CELL * len(beneath) + 12, height, title, parts)


def interval_chart(
    rows: Sequence[tuple[str, float, float, float]],
    *,
    title: str,
    reference: float | None = None,
    unit: str = "%",
) -> str:
    """Return one line a row: (name, low, middle, high) in 0 to 1, as a dot with its interval."""
    margin, width = text_width([row[0] for row in rows]) + 12, 360.0
    parts = []
    if reference is not None:
        place = margin + width * reference
        parts.append(
            f'<line x1="{place:.1f}" x2="{place:.1f}" y1="26" y2="{34 + 22 * len(rows)}" stroke="{QUIET}" stroke-dasharray="3 3"/>'
        )
    for number, (name, low, middle, high) in enumerate(rows):
        height = 40 + 22 * number
        parts.append(written(margin - 6, height + 4, name, anchor="end"))
        start, end = margin + width * low, margin + width * high
        parts.append(
            f'<line x1="{start:.1f}" x2="{end:.1f}" y1="{height}" y2="{height}" stroke="{ACCENT}" stroke-width="3"/>'
        )
        parts.append(
            f'<circle cx="{margin + width * middle:.1f}" cy="{height}" r="4.5" fill="{ACCENT}"/>'
        )
        parts.append(written(margin + width + 8, height + 4, f"{100 * middle:.0f} {unit}"))
    parts += [
        written(
            margin + width * tick,
            54 + 22 * len(rows),
            f"{100 * tick:.0f}",
            anchor="middle",
            colour=QUIET,
        )
        for tick in (0.0, 0.5, 1.0)
    ]
    return drawing(margin + width + 64, 66 + 22 * len(rows), title, parts)


@dataclass(frozen=True, kw_only=True)
class ChartPoint:
    """One point of a scatter chart.

    Args:
        name: written beside it.
        across: where it is from left to right.
        up: where it is from bottom to top.
        across_interval: low and high end of a bar through it, None for none.
        up_interval: the same from bottom to top.
        series: points of the same series have the same colour.
        is_marked: whether a ring draws the eye to it.
    """

    name: str
    across: float
    up: float
    across_interval: tuple[float, float] | None = None
    up_interval: tuple[float, float] | None = None
    series: str = ""
    is_marked: bool = False

    @property
    def is_finite(self) -> bool:
        return math.isfinite(self.across) and math.isfinite(self.up)


def scatter(points: Sequence[ChartPoint], *, title: str, x_label: str, y_label: str) -> str:
    """Return points with their names and bars, in a frame with axes; what is not finite is left out."""
    drawn = [point for point in points if point.is_finite]
    across = Axis.around(
        [value for point in drawn for value in (point.across, *(point.across_interval or ()))],
        PLOT_WIDTH,
    )
    upwards = Axis.around(
        [value for point in drawn for value in (point.up, *(point.up_interval or ()))], PLOT_HEIGHT
    )
    series = list(dict.fromkeys(point.series for point in drawn))
    parts = frame(across, upwards, x_label, y_label)
    for point in drawn:
        parts += _marker(point, across, upwards, PALETTE[series.index(point.series) % len(PALETTE)])
    spots = [
        (LEFT + across.place(point.across), TOP + PLOT_HEIGHT - upwards.place(point.up))
        for point in drawn
    ]
    words, reach = _named_spots([point.name for point in drawn], spots)
    named = [name for name in series if name]
    parts += [
        *words,
        *legend({name: PALETTE[series.index(name) % len(PALETTE)] for name in named}),
    ]
    return drawing(max(LEFT + PLOT_WIDTH, reach) + 16, plot_bottom(len(named)), title, parts)


def frame(across: Axis, upwards: Axis, x_label: str, y_label: str) -> list[str]:
    right, bottom = LEFT + PLOT_WIDTH, TOP + PLOT_HEIGHT
    parts = []
    for value, words in across.ticks:
        left = LEFT + across.place(value)
        parts.append(_rule(left, left, TOP, bottom))
        parts.append(written(left, bottom + 16, words, anchor="middle", colour=QUIET))
    for value, words in upwards.ticks:
        top = bottom - upwards.place(value)
        parts.append(_rule(LEFT, right, top, top))
        parts.append(written(LEFT - 6, top + 4, words, anchor="end", colour=QUIET))
    middle = TOP + PLOT_HEIGHT / 2
    parts.append(written(LEFT + PLOT_WIDTH / 2, bottom + 36, x_label, anchor="middle"))
    parts.append(
        f'<text x="16" y="{middle:.0f}" text-anchor="middle" transform="rotate(-90 16 {middle:.0f})" fill="{INK}">'
        f"{escape(y_label)}</text>"
    )
    return parts


def _rule(start: float, end: float, top: float, bottom: float) -> str:
    return (
        f'<line x1="{start:.1f}" x2="{end:.1f}" y1="{top:.1f}" y2="{bottom:.1f}" stroke="{QUIET}" stroke-width="1" '
        'stroke-opacity="0.3"/>'
    )


def _marker(point: ChartPoint, across: Axis, upwards: Axis, colour: str) -> list[str]:
    bottom = TOP + PLOT_HEIGHT
    left, top = LEFT + across.place(point.across), bottom - upwards.place(point.up)
    parts = []
    if point.across_interval is not None:
        start, end = (LEFT + across.place(value) for value in point.across_interval)
        parts.append(
            f'<line class="bar" x1="{start:.1f}" x2="{end:.1f}" y1="{top:.1f}" y2="{top:.1f}" stroke="{colour}"/>'
        )
    if point.up_interval is not None:
        low, high = (bottom - upwards.place(value) for value in point.up_interval)
        parts.append(
            f'<line class="bar" x1="{left:.1f}" x2="{left:.1f}" y1="{low:.1f}" y2="{high:.1f}" stroke="{colour}"/>'
        )
    if point.is_marked:
        parts.append(
            f'<circle class="ring" cx="{left:.1f}" cy="{top:.1f}" r="9" fill="none" stroke="{INK}" stroke-width="1.5"/>'
        )
    return [*parts, f'<circle cx="{left:.1f}" cy="{top:.1f}" r="4.5" fill="{colour}"/>']


def _named_spots(
    names: Sequence[str], spots: Sequence[tuple[float, float]]
) -> tuple[list[str], float]:
    taken: list[tuple[float, float, float]] = []
    parts: list[str] = []
    for name, (left, top) in zip(names, spots, strict=True):
        width = LETTER * len(name)
        choices = [
            (start, down)
            for down in (-6, 14, -18, 26, -30)
            for start in (left + 8, left - 8 - width)
        ]
        free = [
            (start, top + down)
            for start, down in choices
            if start > LEFT and not _covers(start, top + down, width, taken)
        ]
        start, baseline = free[0] if free else (left + 8, top - 6)
        taken.append((start, baseline, width))
        parts.append(written(start, baseline, name))
    return parts, max((start + width for start, _, width in taken), default=0.0)


def _covers(
    start: float, baseline: float, width: float, taken: Sequence[tuple[float, float, float]]
) -> bool:
    return any(
        abs(baseline - other) < FONT and start < begin + length + 2 and begin < start + width + 2
        for begin, other, length in taken
    )


def legend(colours: Mapping[str, str]) -> list[str]:
    parts: list[str] = []
    for number, (name, colour) in enumerate(colours.items()):
        top = plot_bottom(0) + 18 * number
        parts.append(f'<rect x="{LEFT:.0f}" y="{top:.0f}" width="12" height="12" fill="{colour}"/>')
        parts.append(written(LEFT + 18, top + 10, name))
    return parts


def plot_bottom(n_series: int) -> float:
    return TOP + PLOT_HEIGHT + 50 + 18 * n_series


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
    top = EDGE + LINE * max(map(len, titles), default=1) + 10
    bottom = top + BAR_STEP * max(map(len, shown), default=0) + 6
    parts: list[str] = []
    for number, (panel, lines, bars) in enumerate(zip(panels, titles, shown, strict=True)):
        left = EDGE + number * (width + GAP)
        parts += [
            written(left, EDGE + LINE * (row + 1) - 4, line, weight="600")
            for row, line in enumerate(lines)
        ]
        parts += _bars(panel, bars, highest=highest, target=target, corner=(left + margin, top))
        parts += [
            written(left, bottom + LINE * (row + 1), line, colour=QUIET)
            for row, line in enumerate(_beneath(panel, bars))
        ]
    across = 2 * EDGE + len(panels) * (width + GAP) - (GAP if panels else 0.0)
    return _svg(across, bottom + 2 * LINE + EDGE + 4, "Wrong labels by caption", parts)


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
        parts.append(written(left - 6, baseline, _short(name), anchor="end", weight=weight))
        parts.append(
            f'<rect class="{"target" if is_target else "label"}" x="{left:.1f}" y="{place:.1f}" width="{length:.1f}" '
            f'height="{BAR_THICKNESS:.0f}" fill="{colour}"><title>{escape(name)}</title></rect>'
        )
        parts.append(
            written(
                left + length + 5,
                baseline,
                f"{fine_percent(panel.rate(count))} ({count})",
                colour=QUIET,
            )
        )
    return parts


def _beneath(panel: LabelPanel, bars: Sequence[tuple[str, int]]) -> list[str]:
    n_wrong = sum(panel.counts.values())
    lines = [
        f"{n_wrong} of {panel.n_images} images have a wrong label: {fine_percent(panel.rate(n_wrong))}"
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


def fine_percent(rate: float) -> str:
    """Return a rate with two digits that say something, because failures can be very rare.

    >>> [fine_percent(rate) for rate in (0.0, 0.0000022, 0.0064, 0.0815, 0.5, 1.0)]
    ['0 %', '0.00022 %', '0.64 %', '8.2 %', '50 %', '100 %']
    """
    share = 100 * rate
    if not share:
        return "0 %"
    n_decimals = max(1 - math.floor(math.log10(share)), 0)
    return f"{share:.{n_decimals}f} %"


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME_LENGTH else f"{name[: MAX_NAME_LENGTH - 1]}…"


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
    axis = Axis.around([0.0, total], TIME_WIDTH)
    margin = EDGE + LETTER * max((len(bar.name) for bar in bars), default=0) + 8
    bottom = TOP + TIME_STEP * len(bars)
    parts = [
        f'<line x1="{margin + axis.place(value):.1f}" x2="{margin + axis.place(value):.1f}" y1="{TOP - 6}" y2="{bottom}" '
        f'stroke="{QUIET}" stroke-opacity="0.3"/>'
        + written(
            margin + axis.place(value), bottom + 14, f"{words} s", anchor="middle", colour=QUIET
        )
        for value, words in axis.ticks
    ]
    begun = 0.0
    for number, bar in enumerate(bars):
        parts += _bar(bar, begun, axis, margin, TOP + TIME_STEP * number)
        begun += bar.seconds
    longest = max((len(bar.note) for bar in bars), default=0)
    width = margin + TIME_WIDTH + LETTER * longest + 2 * EDGE
    return drawing(width, bottom + 14 + EDGE, title, parts)


def _bar(bar: TimeBar, begun: float, axis: Axis, margin: float, top: float) -> list[str]:
    left = margin + axis.place(begun)
    length = max(axis.place(bar.seconds), 1.0)
    busy = length * (1.0 - min(max(bar.waiting, 0.0), 1.0))
    box = f'y="{top:.0f}" height="{TIME_THICKNESS:.0f}"'
    parts = [
        written(margin - 8, top + 12, bar.name, anchor="end"),
        f'<rect x="{left:.1f}" {box} width="{length:.1f}" fill="none" stroke="{ACCENT}"/>',
        f'<rect x="{left:.1f}" {box} width="{busy:.1f}" fill="{ACCENT}"/>',
    ]
    return [*parts, written(left + length + 6, top + 12, bar.note, colour=QUIET)]


def drawing(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    """Return a chart beneath its title."""
    width = max(width, BOLD_LETTER * len(title) + 16)
    return _svg(width, height, title, [written(8, 16, title, weight="600"), *parts])


def _svg(width: float, height: float, label: str, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="img" '
        f'aria-label="{escape(label, quote=True)}" font-family="system-ui, sans-serif" font-size="{FONT}">'
    )
    return "\n".join([head, *parts, "</svg>"])


def written(
    left: float,
    top: float,
    words: str,
    *,
    anchor: str = "start",
    colour: str = INK,
    weight: str = "400",
    turned: bool = False,
) -> str:
    turn = f' transform="rotate(-60 {left:.0f} {top:.0f})"' if turned else ""
    where = f'x="{left:.0f}" y="{top:.0f}" text-anchor="{"end" if turned else anchor}"{turn}'
    return f'<text {where} fill="{colour}" font-weight="{weight}">{escape(words)}</text>'


def text_width(names: Sequence[str]) -> float:
    return LETTER * max((len(name) for name in names), default=0)


def _shade(value: float) -> str:
    share = min(max(value, 0.0), 1.0)
    red, green, blue = (round(255 - share * (255 - end)) for end in (23, 72, 128))
    return f"#{red:02x}{green:02x}{blue:02x}"
