"""One image that shows many: rows and columns with names, and words beneath each cell."""

from collections.abc import Sequence

from PIL import Image, ImageDraw, ImageFont

from weakspot.core.errors import ConfigError, raise_all
from weakspot.data.images import to_rgb

INK = (28, 28, 28)
PAPER = (255, 255, 255)
EMPTY = (236, 236, 236)
GAP = 6
FONT_SIZE = 13
LINE_HEIGHT = 17
ROW_NAME_WIDTH = 120
MIN_CELL = 16

Font = ImageFont.ImageFont | ImageFont.FreeTypeFont


def labelled_grid(
    cells: Sequence[Sequence[Image.Image | None]],
    *,
    row_names: Sequence[str],
    column_names: Sequence[str],
    cell_side: int = 160,
    captions: Sequence[Sequence[str]] | None = None,
) -> Image.Image:
    """Return one image with a cell for each of the images, whole and in its proportions; nothing is cropped.

    Args:
        cells: images by row and column; None leaves a cell empty.
        row_names: written at the left; empty strings everywhere take no room.
        column_names: written above; empty strings everywhere take no room.
        cell_side: width and height of a cell in pixels.
        captions: words beneath each cell, by row and column; long ones are wrapped.

    Raises:
        ConfigError: if names or captions do not fit the cells, or there is nothing to show.

    >>> labelled_grid([[Image.new("RGB", (8, 8)), None]], row_names=[""], column_names=["", ""], cell_side=20).size
    (58, 32)
    """
    _refuse_misfits(cells, row_names, column_names, cell_side, captions)
    font = ImageFont.load_default(size=FONT_SIZE)
    left_edge = GAP + (ROW_NAME_WIDTH if any(row_names) else 0)
    top_edge = GAP + _height(column_names, font, cell_side)
    said = [text for line in captions or () for text in line]
    step = cell_side + GAP, cell_side + _height(said, font, cell_side) + GAP

    def corner(row: int, column: int) -> tuple[int, int]:
        return left_edge + column * step[0], top_edge + row * step[1]

    sheet = Image.new("RGB", corner(len(row_names), len(column_names)), PAPER)
    pen = ImageDraw.Draw(sheet)
    for column, name in enumerate(column_names):
        _write(pen, (corner(0, column)[0], GAP // 2), _wrap(name, font, cell_side), font)
    for row, name in enumerate(row_names):
        lines = _wrap(name, font, ROW_NAME_WIDTH - GAP)
        _write(
            pen,
            (GAP, corner(row, 0)[1] + max(0, (cell_side - LINE_HEIGHT * len(lines)) // 2)),
            lines,
            font,
        )
        for column, image in enumerate(cells[row]):
            left, top = corner(row, column)
            sheet.paste(_framed(image, cell_side), (left, top))
            if captions is not None:
                _write(
                    pen,
                    (left, top + cell_side + 2),
                    _wrap(captions[row][column], font, cell_side),
                    font,
                )
    return sheet


def _refuse_misfits(
    cells: Sequence[Sequence[Image.Image | None]],
    row_names: Sequence[str],
    column_names: Sequence[str],
    cell_side: int,
    captions: Sequence[Sequence[str]] | None,
) -> None:
    problems = []
    if not row_names or not column_names:
        problems.append("there must be at least one row and one column")
    if cell_side < MIN_CELL:
        problems.append(f"cell_side must be at least {MIN_CELL}, is {cell_side}")
    wanted = [len(column_names)] * len(row_names)
    if [len(line) for line in cells] != wanted:
        problems.append(
            f"cells must be {len(row_names)} rows of {len(column_names)}, as the names are"
        )
    if captions is not None and [len(line) for line in captions] != wanted:
        problems.append("captions must be as many as cells")
    raise_all(
        problems,
        error=ConfigError,
        what="The images cannot be put into a grid:",
        where="grid of images",
    )


def _framed(image: Image.Image | None, side: int) -> Image.Image:
    cell = Image.new("RGB", (side, side), EMPTY)
    if image is None:
        return cell
    shown, _ = to_rgb(image)
    factor = side / max(shown.size)
    wanted = (max(1, round(shown.width * factor)), max(1, round(shown.height * factor)))
    if wanted != shown.size:
        shown = shown.resize(
            wanted, Image.Resampling.LANCZOS if factor < 1 else Image.Resampling.NEAREST
        )
    cell.paste(shown, ((side - shown.width) // 2, (side - shown.height) // 2))
    return cell


def _height(texts: Sequence[str], font: Font, width: int) -> int:
    n_lines = max((len(_wrap(text, font, width)) for text in texts), default=0)
    return n_lines * LINE_HEIGHT + (4 if n_lines else 0)


def _wrap(text: str, font: Font, width: int) -> list[str]:
    """Return lines that are no wider than a width; words that are wider themselves are broken."""
    lines: list[str] = []
    for word in text.split():
        if lines and font.getlength(f"{lines[-1]} {word}") <= width:
            lines[-1] = f"{lines[-1]} {word}"
        else:
            lines += _broken(word, font, width)
    return lines


def _broken(word: str, font: Font, width: int) -> list[str]:
    pieces = [""]
    for letter in word:
        if pieces[-1] and font.getlength(pieces[-1] + letter) > width:
            pieces.append(letter)
        else:
            pieces[-1] += letter
    return pieces


def _write(
    pen: ImageDraw.ImageDraw, corner: tuple[int, int], lines: Sequence[str], font: Font
) -> None:
    left, top = corner
    for number, line in enumerate(lines):
        pen.text((left, top + number * LINE_HEIGHT), line, fill=INK, font=font)
