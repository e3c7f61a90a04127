"""A decoded direction as a folder: images, a table, one sheet with both series, and a record."""

import csv
import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

from PIL import Image, ImageOps

from weakspot.data.image_grid import labelled_grid
from weakspot.report.wording import count, interval, percent
from weakspot.run.reporting import written
from weakspot_lab.decode.decoding import DecodedDirection, DecodedImage, DecodedPoint, DecodeResult

SHEET, TABLE, DATA, IMAGES = "decoded.png", "metadata.csv", "decoded.json", "images"
COLUMNS = (
    "image",
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
MAX_ROWS = 3
CELL_SIDE = 140
FRAME = 4
WRONG, RIGHT = (196, 42, 42), (64, 140, 84)


def write_decoded(result: DecodeResult, folder: Path) -> tuple[Path, ...]:
    """Write everything into a folder and return the sheet, the table and the record.

    Raises:
        ConfigError: if the folder cannot be written.
    """
    images: dict[str, bytes | Image.Image] = {}
    rows = []
    for point, draws in zip(result.facts.points, result.draws, strict=True):
        for place, one in enumerate(draws):
            name = f"{point.series}-{point.alpha:.3f}-{place:03d}.png"
            if one.image is not None:
                images[name] = one.image
            rows.append(_table_row(point, one, "" if one.image is None else f"{IMAGES}/{name}"))
    stream = StringIO(newline="")
    writer = csv.DictWriter(stream, fieldnames=COLUMNS)
    writer.writeheader()
    writer.writerows(rows)
    written(folder / IMAGES, images)
    return written(
        folder,
        {
            SHEET: decoded_sheet(result),
            TABLE: stream.getvalue().encode(),
            DATA: (result.facts.model_dump_json(indent=2) + "\n").encode(),
        },
    )


def decoded_sheet(result: DecodeResult) -> Image.Image:
    """Return the first images of both series, one column a share; the same row of a series has the same seed throughout.

    Failures have a red frame; beneath the last row of a series stands how many fail at each share.
    """
    points = result.facts.points
    n_columns = len(points) // 2
    n_rows = min(MAX_ROWS, len(result.draws[0]))
    cells: list[list[Image.Image | None]] = []
    captions: list[list[str]] = []
    for start in (0, n_columns):
        columns = result.draws[start : start + n_columns]
        for place in range(n_rows):
            cells.append([_framed(column[place]) for column in columns])
            captions.append([column[place].answer for column in columns])
        rates = [_rate(point) for point in points[start : start + n_columns]]
        captions[-1] = [
            f"{answer}; of all, {rate}" if rate else answer
            for answer, rate in zip(captions[-1], rates, strict=True)
        ]
    return labelled_grid(
        cells,
        row_names=[point.series for point in (points[0], points[n_columns]) for _ in range(n_rows)],
        column_names=[f"alpha {point.alpha:g}" for point in points[:n_columns]],
        cell_side=CELL_SIDE,
        captions=captions,
    )


def explanation(facts: DecodedDirection) -> Iterator[str]:
    yield (
        f"{facts.title}: “{facts.caption}” rotated towards (harder) and away from (easier) the direction of slice "
        f"{facts.slice_id}, decoded by {facts.generator_id}."
    )
    for point in facts.points:
        yield f"  {point.series} {point.alpha:g}: {_sentence(point)}"
    yield "These are generated images: they show what the direction looks like, and prove nothing about real ones."


def _sentence(point: DecodedPoint) -> str:
    rejected = ", ".join(f"{number} {quality}" for quality, number in point.rejected.items())
    left_out = f"; rejected: {rejected}" if rejected else ""
    if point.failures is None:
        return f"{count(point.n_generated, 'image')}{left_out}."
    if not point.failures.total:
        return f"no image passed the quality check{left_out}."
    share = point.failures
    return f"{share.count} of {share.total} fail ({percent(share.value)}, {interval(share.interval)}){left_out}."


def _rate(point: DecodedPoint) -> str:
    return (
        "" if point.failures is None else f"{point.failures.count} of {point.failures.total} fail"
    )


def _table_row(point: DecodedPoint, one: DecodedImage, place: str) -> dict[str, object]:
    generated = one.generated
    return {
        "image": place,
        "label": generated.request.class_name,
        "prompt": generated.request.prompt,
        "generator": generated.generator_id,
        "seed": generated.request.seed,
        "series": point.series,
        "alpha": point.alpha,
        "answer": one.answer if one.image is not None else "",
        "fails": "" if one.fails is None else str(one.fails).lower(),
        "verdicts": json.dumps(generated.verdicts),
        "sha256": generated.content_hash,
        "synthetic": "true",
    }


def _framed(one: DecodedImage) -> Image.Image | None:
    if one.image is None or one.fails is None:
        return one.image
    inner = ImageOps.contain(one.image, (CELL_SIDE - 2 * FRAME, CELL_SIDE - 2 * FRAME))
    return ImageOps.expand(inner, border=FRAME, fill=WRONG if one.fails else RIGHT)
