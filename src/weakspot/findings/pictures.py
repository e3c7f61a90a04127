"""Findings as images and as HTML for notebooks."""

import base64
from collections.abc import Mapping, Sequence
from html import escape
from io import BytesIO
from typing import TypeVar

from PIL import Image, ImageDraw, ImageFont

from weakspot.core.evidence import Evidence, Interval
from weakspot.media.image_grid import INK, PAPER, labelled_grid
from weakspot.report.findings import SliceSentences
from weakspot.report.first_answer import FirstAnswer
from weakspot.report.image_budget import ShownImage, SliceImages
from weakspot.report.wording import percent

FAILING, REST = (178, 58, 46), (120, 130, 140)
Cell = TypeVar("Cell")
BAR_WIDTH, BAR_HEIGHT, MARGIN, LEFT = 360, 22, 14, 150


def draw_strips(
    evidence: Evidence, shown: SliceImages, thumbnails: Mapping[str, bytes], side: int
) -> Image.Image:
    """Return members in one row and the farthest of their class in the other, with what the classifier says beneath."""
    strips = [shown.hard, shown.easy] if shown.easy else [shown.hard]
    rates = [evidence.rate_inside, evidence.rate_outside]
    n_columns = max(len(strip) for strip in strips)
    return labelled_grid(
        [
            _padded([_opened(image, thumbnails) for image in strip], n_columns, None)
            for strip in strips
        ],
        row_names=[
            f"{name}: {percent(rate)} fail"
            for name, rate in zip(("the slice", "the rest"), rates, strict=True)
        ][: len(strips)],
        column_names=[""] * n_columns,
        cell_side=side,
        captions=[_padded([image.caption for image in strip], n_columns, "") for strip in strips],
    )


def draw_bars(title: str, evidence: Evidence) -> Image.Image:
    """Return the failure rates of a slice and of the rest of its class as bars with their intervals."""
    font = ImageFont.load_default(13)
    image = Image.new("RGB", (LEFT + BAR_WIDTH + 70, 3 * (BAR_HEIGHT + MARGIN) + MARGIN), PAPER)
    draw = ImageDraw.Draw(image)
    draw.text((MARGIN, MARGIN), title, INK, font)
    rows = (
        ("the slice", evidence.rate_inside, evidence.interval_inside, FAILING),
        ("rest of the class", evidence.rate_outside, evidence.interval_outside, REST),
    )
    for number, (name, rate, interval, colour) in enumerate(rows, start=1):
        top = MARGIN + number * (BAR_HEIGHT + MARGIN)
        draw.text((MARGIN, top + 3), name, INK, font)
        draw.rectangle((LEFT, top, LEFT + BAR_WIDTH * rate, top + BAR_HEIGHT), colour)
        _draw_interval(draw, interval, top + BAR_HEIGHT // 2)
        draw.text((LEFT + BAR_WIDTH * interval.high + 6, top + 3), percent(rate), INK, font)
    return image


def _draw_interval(draw: ImageDraw.ImageDraw, interval: Interval, middle: int) -> None:
    low, high = LEFT + BAR_WIDTH * interval.low, LEFT + BAR_WIDTH * interval.high
    draw.line((low, middle, high, middle), INK, 2)
    for end in (low, high):
        draw.line((end, middle - 4, end, middle + 4), INK, 2)


def finding_html(
    title: str, said: SliceSentences, shown: SliceImages, thumbnails: Mapping[str, bytes]
) -> str:
    """Return one finding: its words, what was measured, and strips of images; everything is escaped."""
    lines = [said.sentence, said.effect, said.not_sure, *said.cause]
    strips = [
        f'<div style="margin:4px 0"><small>{escape(name)}</small><br>{_strip(images, thumbnails)}</div>'
        for name, images in (("in the slice", shown.hard), ("rest of the class", shown.easy))
        if any(image.sample_id in thumbnails for image in images)
    ]
    body = "".join(f"<p style='margin:2px 0'>{escape(line)}</p>" for line in lines if line)
    return f"<h4 style='margin:10px 0 2px'>{escape(title)}</h4>{''.join(strips)}{body}"


def first_lines_html(answer: FirstAnswer) -> list[str]:
    """Return the lines above all findings: how the classifier does, what is wrong with whole classes, and what is not proven."""
    whole = [finding.text for finding in answer.findings if not finding.slice_id]
    lines = [answer.headline, *whole, answer.findings_note, answer.not_confirmed]
    return [escape(line) for line in lines if line]


def _strip(images: Sequence[ShownImage], thumbnails: Mapping[str, bytes]) -> str:
    return "".join(
        f'<img alt="{escape(image.caption, quote=True)}" title="{escape(image.caption, quote=True)}"'
        f' style="height:96px;margin-right:4px" src="data:image/jpeg;base64,'
        f'{base64.b64encode(thumbnails[image.sample_id]).decode()}">'
        for image in images
        if image.sample_id in thumbnails
    )


def _opened(image: ShownImage, thumbnails: Mapping[str, bytes]) -> Image.Image | None:
    data = thumbnails.get(image.sample_id)
    return None if data is None else Image.open(BytesIO(data))


def _padded(cells: list[Cell], n_cells: int, empty: Cell) -> list[Cell]:
    return cells + [empty] * (n_cells - len(cells))
