"""A decoded direction as a folder: pictures, a table, one sheet with both series, and a record."""

import csv
import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

from PIL import Image, ImageOps

from weakspot.app.decoding import DecodedDirection, DecodedDraw, DecodedPoint, DecodeResult
from weakspot.app.written_files import written
from weakspot.media.picture_grid import labelled_grid
from weakspot.report.wording import count, interval, percent

SHEET, TABLE, DATA, PICTURES = "decoded.png", "metadata.csv", "decoded.json", "pictures"
COLUMNS = (
    "picture",
    "label",
    "prompt",
    "generator",
    "seed",
    "series",
    "alpha",
    "answer",
    "fails",
    "verdicts",
    "sha256",
    "synthetic",
)
MOST_ROWS = 3
CELL_SIDE = 140
FRAME = 4
WRONG, RIGHT = (196, 42, 42), (64, 140, 84)


def write_decoded(result: DecodeResult, folder: Path) -> tuple[Path, ...]:
    """Write everything into a folder and return the sheet, the table and the record.

    Raises:
        ConfigError: if the folder cannot be written.
    """
    pictures: dict[str, bytes | Image.Image] = {}
    rows = []
    for point, draws in zip(result.facts.points, result.draws, strict=True):
        for place, one in enumerate(draws):
            name = f"{point.series}-{point.alpha:.3f}-{place:03d}.png"
            if one.picture is not None:
                pictures[name] = one.picture
            rows.append(_table_row(point, one, "" if one.picture is None else f"{PICTURES}/{name}"))
    stream = StringIO(newline="")
    writer = csv.DictWriter(stream, fieldnames=COLUMNS)
    writer.writeheader()
    writer.writerows(rows)
    written(folder / PICTURES, pictures)
    return written(
        folder,
        {
            SHEET: decoded_sheet(result),
            TABLE: stream.getvalue().encode(),
            DATA: (result.facts.model_dump_json(indent=2) + "\n").encode(),
        },
    )


def decoded_sheet(result: DecodeResult) -> Image.Image:
    """Return the first pictures of both series, one column a share; the same row of a series has the same seed throughout.

    Failures have a red frame; beneath the last row of a series stands how many fail at each share.
    """
    points = result.facts.points
    n_columns = len(points) // 2
    n_rows = min(MOST_ROWS, len(result.draws[0]))
    cells: list[list[Image.Image | None]] = []
    captions: list[list[str]] = []
    for start in (0, n_columns):
        columns = result.draws[start : start + n_columns]
        for place in range(n_rows):
            cells.append([_framed(column[place]) for column in columns])
            captions.append([column[place].answer for column in columns])
        rates = [_rate(point) for point in points[start : start + n_columns]]
        captions[-1] = [f"{answer}; of all, {rate}" if rate else answer for answer, rate in zip(captions[-1], rates, strict=True)]
    return labelled_grid(
        cells,
        row_names=[point.series for point in (points[0], points[n_columns]) for _ in range(n_rows)],
        column_names=[f"alpha {point.alpha:g}" for point in points[:n_columns]],
        cell_side=CELL_SIDE,
        captions=captions,
    )


def explanation(facts: DecodedDirection) -> Iterator[str]:
    """Yield what was done and what came out, in sentences."""
    yield (
        f"{facts.title}: “{facts.caption}” rotated towards (harder) and away from (easier) the direction of slice "
        f"{facts.slice_id}, decoded by {facts.generator_id}."
    )
    for point in facts.points:
        yield f"  {point.series} {point.alpha:g}: {_sentence(point)}"
    yield "These are generated pictures: they show what the direction looks like, and prove nothing about real ones."


def _sentence(point: DecodedPoint) -> str:
    rejected = ", ".join(f"{number} {gate}" for gate, number in point.rejected.items())
    left_out = f"; rejected: {rejected}" if rejected else ""
    if point.failures is None:
        return f"{count(point.n_drawn, 'picture')}{left_out}."
    if not point.failures.total:
        return f"no picture passed the gate{left_out}."
    share = point.failures
    return f"{share.count} of {share.total} fail ({percent(share.value)}, {interval(share.interval)}){left_out}."


def _rate(point: DecodedPoint) -> str:
    return "" if point.failures is None else f"{point.failures.count} of {point.failures.total} fail"


def _table_row(point: DecodedPoint, one: DecodedDraw, place: str) -> dict[str, object]:
    drawn = one.drawn
    return {
        "picture": place,
        "label": drawn.order.class_name,
        "prompt": drawn.order.prompt,
        "generator": drawn.generator_id,
        "seed": drawn.order.seed,
        "series": point.series,
        "alpha": point.alpha,
        "answer": one.answer if one.picture is not None else "",
        "fails": "" if one.fails is None else str(one.fails).lower(),
        "verdicts": json.dumps(drawn.verdicts),
        "sha256": drawn.content_hash,
        "synthetic": "true",
    }


def _framed(one: DecodedDraw) -> Image.Image | None:
    if one.picture is None or one.fails is None:
        return one.picture
    inner = ImageOps.contain(one.picture, (CELL_SIDE - 2 * FRAME, CELL_SIDE - 2 * FRAME))
    return ImageOps.expand(inner, border=FRAME, fill=WRONG if one.fails else RIGHT)
