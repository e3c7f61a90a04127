"""A table of rates as coloured cells, with other names down than across."""

from collections.abc import Sequence
from html import escape

from weakspot.media.charts import BOLD_LETTER, CELL, FONT, INK, LETTER

TOP = 30.0
EDGE = 12.0
DARK_FROM = 0.55
DARKEST = (23, 72, 128)
WHITE, BLACK = "#ffffff", "#1c1c1c"
SLANT = 0.87


def rate_map(
    rows: Sequence[str], columns: Sequence[str], values: Sequence[Sequence[float]], *, title: str
) -> str:
    """Return rows times columns of values in 0 to 1, darker for larger, with the number in every cell.

    Args:
        rows: names at the left.
        columns: names beneath.
        values: one line a row.
        title: above the table.
    """
    left = LETTER * max(map(len, rows), default=0) + EDGE
    bottom = TOP + CELL * len(rows)
    # Names beneath are slanted to the left, so a long one may begin before the first cell.
    left = max(
        [
            left,
            *(
                SLANT * LETTER * len(name) * 0.6 - CELL * number
                for number, name in enumerate(columns)
            ),
        ]
    )
    parts = [
        _text(left - 6, TOP + CELL * (row + 0.5) + 4, name, anchor="end")
        for row, name in enumerate(rows)
    ]
    for column, name in enumerate(columns):
        across = left + CELL * (column + 0.5)
        parts.append(
            _text(
                across,
                bottom + 14,
                name,
                anchor="end",
                turn=f' transform="rotate(-60 {across:.0f} {bottom + 14:.0f})"',
            )
        )
    for row, line in enumerate(values):
        for column, value in enumerate(line):
            across, down = left + CELL * column, TOP + CELL * row
            parts.append(
                f'<rect x="{across:.0f}" y="{down:.0f}" width="{CELL - 2}" height="{CELL - 2}" fill="{_shade(value)}"/>'
            )
            colour = WHITE if value > DARK_FROM else BLACK
            parts.append(
                _text(
                    across + CELL / 2 - 1,
                    down + CELL / 2 + 4,
                    f"{value:.2f}",
                    anchor="middle",
                    colour=colour,
                )
            )
    width = max(left + CELL * len(columns) + EDGE, BOLD_LETTER * len(title) + 16)
    height = bottom + SLANT * LETTER * max(map(len, columns), default=0) + 28
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="img" '
        f'aria-label="{escape(title, quote=True)}" font-family="system-ui, sans-serif" font-size="{FONT}">'
    )
    return "\n".join(
        [
            head,
            f'<text x="8" y="16" fill="{INK}" font-weight="600">{escape(title)}</text>',
            *parts,
            "</svg>",
        ]
    )


def _text(
    left: float, top: float, words: str, *, anchor: str, colour: str = INK, turn: str = ""
) -> str:
    return f'<text x="{left:.0f}" y="{top:.0f}" text-anchor="{anchor}" fill="{colour}"{turn}>{escape(words)}</text>'


def _shade(value: float) -> str:
    share = min(max(value, 0.0), 1.0)
    return "#" + "".join(f"{round(255 - share * (255 - end)):02x}" for end in DARKEST)
