"""Masks of the objects in a project's images: each image goes through the segmenter once, and what it gave is kept."""

import base64
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from PIL import Image

from weakspot.core.arrays import IntArray
from weakspot.core.roles import ObjectMask, Segmenter
from weakspot.core.run import Progress, no_progress
from weakspot.run.model_map import ImageBench, ImageTexts
from weakspot.run.settings import Settings
from weakspot.run.wiring import build_part, resolved_options, with_provider

EMBEDDED = "embedded"
MAX_KEPT_SIDE = 384
UNREADABLE = "the image cannot be read, or the segmenter fails on it"
OUTSIDE = "the box lies outside the image"
WHO = "segmenter"


def build_segmenter(
    settings: Settings, folder: Path, *, progress: Progress = no_progress
) -> Segmenter | None:
    """Return the segmenter that is configured, None if there is none; nothing is loaded yet.

    Args:
        settings: the project's settings.
        folder: where relative paths start.
        progress: told the bytes of the embedded segmenter's first download.

    Raises:
        ConfigError: if there is no such segmenter, or one of its options does not exist.
    """
    chosen = settings.segmenter
    if not chosen.name:
        return None
    options = with_provider(
        "segmenters",
        chosen.name,
        resolved_options(chosen.options, folder),
        settings.engine.provider,
    )
    if chosen.name == EMBEDDED:
        options.setdefault("progress", progress)
    built: Segmenter = build_part("segmenters", chosen.name, options, where="[segmenter] options")
    return built


@dataclass(frozen=True, kw_only=True, eq=False)
class ObjectMasks:
    """The masks of a data set's images; an image that cannot be read has a refused one and is tried again next time.

    Args:
        segmenter: the model.
        bench: where it is asked.
    """

    segmenter: Segmenter
    bench: ImageBench

    def of(self, rows: IntArray, class_name: str) -> list[ObjectMask]:
        """Return one mask a row, no larger than MAX_KEPT_SIDE on either side, of the object of a class.

        Raises:
            ModelError: if the segmenter cannot be used and nothing is known of these rows.
        """
        if not len(rows):
            return []
        said = self._texts.said(
            np.asarray(rows, dtype=np.int64),
            partial(_written_masks, self.segmenter, class_name),
            question=f"object of class {class_name}",
        )
        return [read_mask(text) for text in said]

    @cached_property
    def _texts(self) -> ImageTexts:
        return ImageTexts(
            self.bench,
            who=WHO,
            part=self.segmenter,
            identity=lambda: self.segmenter.segmenter_id,
            step="masks",
        )


Box = tuple[float, float, float, float]
"""Left, top, right and bottom of an object in pixels of its image."""
MARGIN = 0.12


def read_box(text: str) -> Box | None:
    """Return a box as a table has it: four numbers, left, top, right, bottom; None if these are none.

    >>> read_box("10, 20, 50.5, 60"), read_box("10 20 5 60"), read_box("")
    ((10.0, 20.0, 50.5, 60.0), None, None)
    """
    try:
        left, top, right, bottom = (float(part) for part in text.replace(",", " ").split())
    except ValueError:
        return None
    return (left, top, right, bottom) if right > left and bottom > top else None


def mask_in_box(
    segmenter: Segmenter, image: Image.Image, box: Box, *, class_name: str
) -> ObjectMask:
    """Return the mask of the object in a box: the segmenter sees the box with a margin around it, and what is outside is no object."""
    left, top, right, bottom = box
    across, down = MARGIN * (right - left), MARGIN * (bottom - top)
    window = (
        max(0, round(left - across)),
        max(0, round(top - down)),
        min(image.width, round(right + across)),
        min(image.height, round(bottom + down)),
    )
    if window[2] <= window[0] or window[3] <= window[1]:
        return ObjectMask(coverage=np.zeros((1, 1), dtype=np.float32), quality=0.0, refused=OUTSIDE)
    (found,) = segmenter.segment([image.crop(window)], class_names=[class_name])
    size = (window[2] - window[0], window[3] - window[1])
    part = Image.fromarray(np.round(np.clip(found.coverage, 0, 1) * 255).astype(np.uint8))
    coverage = np.zeros((image.height, image.width), dtype=np.float32)
    coverage[window[1] : window[3], window[0] : window[2]] = (
        np.asarray(part.resize(size, Image.Resampling.BILINEAR), dtype=np.float32) / 255
    )
    return ObjectMask(coverage=coverage, quality=found.quality, refused=found.refused)


def _written_masks(
    segmenter: Segmenter, class_name: str, images: Sequence[Image.Image]
) -> list[str]:
    found = segmenter.segment(images, class_names=[class_name] * len(images))
    return [write_mask(mask) for mask in found]


def write_mask(mask: ObjectMask) -> str:
    """Return a mask as text: what is kept of it, in steps of 1/255 and at most MAX_KEPT_SIDE pixels long."""
    levels = np.round(np.clip(mask.coverage, 0.0, 1.0) * 255).astype(np.uint8)
    image = Image.fromarray(levels)
    image.thumbnail((MAX_KEPT_SIDE, MAX_KEPT_SIDE), Image.Resampling.BOX)
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return json.dumps(
        {
            "quality": round(float(mask.quality), 4),
            "refused": mask.refused,
            "coverage": base64.b64encode(stream.getvalue()).decode("ascii"),
        }
    )


def read_mask(text: str) -> ObjectMask:
    """Return a mask that was written; a text that is empty or no mask gives a refused one."""
    try:
        kept = json.loads(text)
        image = Image.open(io.BytesIO(base64.b64decode(kept["coverage"])))
        return ObjectMask(
            coverage=np.asarray(image, dtype=np.float32) / np.float32(255),
            quality=float(kept["quality"]),
            refused=str(kept["refused"]),
        )
    except (ValueError, KeyError, TypeError, OSError):
        return ObjectMask(
            coverage=np.zeros((1, 1), dtype=np.float32), quality=0.0, refused=UNREADABLE
        )
