"""Small charts as SVG text: they need no library, scale, print, and go into a page or a file of their own.

Colours come from CSS variables where a page defines them (`--ink`, `--quiet`, `--accent`), so that dark pages stay readable.
"""

from collections.abc import Mapping, Sequence
from html import escape

INK, QUIET, ACCENT = "var(--ink, #1c1c1c)", "var(--quiet, #767676)", "var(--accent, #1f5fa8)"
PALETTE = ("#1f5fa8", "#c4572a", "#3a8a4d", "#8a4fa0", "#b08a1e", "#50808e", "#a83a5b", "#6a6a6a", "#2aa198", "#7a5c3a")
FONT = 12
CELL = 46
LETTER = 6.6
BOLD_LETTER = 7.6


def heat_map(names: Sequence[str], values: Sequence[Sequence[float]], *, title: str) -> str:
    """Return a square table of values in 0 to 1, darker for larger, with the number in every cell."""
    margin = _text_width(names) + 12
    side = CELL * len(names)
    parts = []
    for row, (name, line) in enumerate(zip(names, values, strict=True)):
        middle = 30 + CELL * row + CELL / 2
        parts.append(_text(margin - 6, middle + 4, name, anchor="end"))
        parts.append(_text(margin + CELL * row + CELL / 2, 30 + side + 16, name, turned=True))
        for column, value in enumerate(line):
            left = margin + CELL * column
            ink = "#ffffff" if value > 0.55 else "#1c1c1c"  # noqa: PLR2004 - where dark text stops being readable
            parts.append(
                f'<rect x="{left:.0f}" y="{30 + CELL * row}" width="{CELL - 2}" height="{CELL - 2}" fill="{_shade(value)}"/>'
            )
            parts.append(_text(left + CELL / 2 - 1, middle + 4, f"{value:.2f}", anchor="middle", colour=ink))
    return _drawing(margin + side + 12, 46 + side + _text_width(names), title, parts)


def interval_chart(
    rows: Sequence[tuple[str, float, float, float]], *, title: str, reference: float | None = None, unit: str = "%"
) -> str:
    """Return one line a row: (name, low, middle, high) in 0 to 1, as a dot with its interval."""
    margin, width = _text_width([row[0] for row in rows]) + 12, 360.0
    parts = []
    if reference is not None:
        place = margin + width * reference
        parts.append(
            f'<line x1="{place:.1f}" x2="{place:.1f}" y1="26" y2="{34 + 22 * len(rows)}" stroke="{QUIET}" stroke-dasharray="3 3"/>'
        )
    for number, (name, low, middle, high) in enumerate(rows):
        height = 40 + 22 * number
        parts.append(_text(margin - 6, height + 4, name, anchor="end"))
        start, end = margin + width * low, margin + width * high
        parts.append(f'<line x1="{start:.1f}" x2="{end:.1f}" y1="{height}" y2="{height}" stroke="{ACCENT}" stroke-width="3"/>')
        parts.append(f'<circle cx="{margin + width * middle:.1f}" cy="{height}" r="4.5" fill="{ACCENT}"/>')
        parts.append(_text(margin + width + 8, height + 4, f"{100 * middle:.0f} {unit}"))
    parts += [
        _text(margin + width * tick, 54 + 22 * len(rows), f"{100 * tick:.0f}", anchor="middle", colour=QUIET)
        for tick in (0.0, 0.5, 1.0)
    ]
    return _drawing(margin + width + 64, 66 + 22 * len(rows), title, parts)


def bar_groups(groups: Mapping[str, Mapping[str, float]], *, title: str) -> str:
    """Return bars in 0 to 1: one group a key, one bar a series, the same series in the same colour."""
    series = list(dict.fromkeys(name for bars in groups.values() for name in bars))
    margin, width, height = _text_width(list(groups)) + 12, 360.0, 14
    parts: list[str] = []
    top = 34.0
    for name, bars in groups.items():
        parts.append(_text(margin - 6, top + height * len(bars) / 2 + 4, name, anchor="end"))
        for one, value in bars.items():
            colour = PALETTE[series.index(one) % len(PALETTE)]
            parts.append(
                f'<rect x="{margin:.0f}" y="{top:.0f}" width="{max(width * value, 1):.1f}" height="{height - 2}" fill="{colour}"/>'
            )
            parts.append(_text(margin + width * value + 5, top + 10, f"{value:.2f}", colour=QUIET))
            top += height
        top += 10
    for number, one in enumerate(series):
        parts.append(
            f'<rect x="{margin:.0f}" y="{top + 18 * number:.0f}" width="12" height="12" fill="{PALETTE[number % len(PALETTE)]}"/>'
        )
        parts.append(_text(margin + 18, top + 10 + 18 * number, one))
    return _drawing(margin + width + 64, top + 18 * len(series) + 12, title, parts)


def _drawing(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    width = max(width, BOLD_LETTER * len(title) + 16)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="img" '
        f'aria-label="{escape(title, quote=True)}" font-family="system-ui, sans-serif" font-size="{FONT}">'
    )
    return "\n".join([head, _text(8, 16, title, weight="600"), *parts, "</svg>"])


def _text(  # noqa: PLR0913 - one argument an attribute of the element
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


def _text_width(names: Sequence[str]) -> float:
    return LETTER * max((len(name) for name in names), default=0)


def _shade(value: float) -> str:
    """Return a colour between white and dark blue."""
    share = min(max(value, 0.0), 1.0)
    red, green, blue = (round(255 - share * (255 - end)) for end in (23, 72, 128))
    return f"#{red:02x}{green:02x}{blue:02x}"
