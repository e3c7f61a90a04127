"""What is behind an object: an image without its own object, a crop of it, or plain paint."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import BoolArray, ByteArray, FloatArray
from weakspot.core.seeding import generator
from weakspot.generation.compose.cutting import Cut, mask_between
from weakspot.generation.compose.edits import as_pixels, mixed
from weakspot.generation.compose.words import COLOURS, PLAIN

FILLING_SIDE = 96
FILLING_REACH = 3
GROWN = 0.04
PAINT_SHADE = 14.0
TONES_TAKEN = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class Backdrop:
    """An image to put an object on.

    Args:
        pixels: [h, w, 3].
        hole: centre (x, y) of what was removed from it, as shares of width and height; None if nothing was.
    """

    pixels: ByteArray
    hole: tuple[float, float] | None = None


def emptied(cut: Cut) -> Backdrop:
    """Return the image of an object without the object: its place is filled with what is elsewhere in the image."""
    import cv2

    height, width = cut.alpha.shape
    scale = min(1.0, FILLING_SIDE / max(height, width))
    small_size = (max(8, round(width * scale)), max(8, round(height * scale)))
    small = cv2.resize(cut.pixels, small_size, interpolation=cv2.INTER_AREA)
    brush = np.ones((2 * round(GROWN * max(small_size)) + 1,) * 2, dtype=np.uint8)
    hole = cv2.dilate(
        (cv2.resize(cut.alpha, small_size, interpolation=cv2.INTER_AREA) > 0.1).astype(np.uint8),  # noqa: PLR2004
        brush,
    )
    smooth = cv2.inpaint(small, hole, FILLING_REACH, cv2.INPAINT_TELEA)
    large = (
        cv2.resize(smooth, (width, height), interpolation=cv2.INTER_CUBIC) + _grain(cut)[..., None]
    )
    large_hole = cv2.resize(hole, (width, height), interpolation=cv2.INTER_NEAREST) > 0
    step = best_step(small, hole > 0)
    if step is not None:
        large = _from_elsewhere(
            cut.pixels, large, large_hole, (round(step[0] / scale), round(step[1] / scale))
        )
    soft = cv2.GaussianBlur(
        large_hole.astype(np.float32), (0, 0), max(1.0, max(height, width) / 90)
    )
    top, left, bottom, right = cut.box
    centre = (0.5 * (left + right) / width, 0.5 * (top + bottom) / height)
    return Backdrop(pixels=mixed(cut.pixels, large, np.clip(soft * 1.4, 0.0, 1.0)), hole=centre)


def best_step(pixels: ByteArray, hole: BoolArray) -> tuple[int, int] | None:
    """Return by how much (down, across) the image must be moved to fill its hole so that the rim fits best, if it can."""
    import cv2

    height, width = hole.shape
    rim = mask_between(
        hole.astype(np.uint8), cv2.dilate(hole.astype(np.uint8), np.ones((7, 7), dtype=np.uint8))
    )
    rows, columns = np.nonzero(hole)
    values = pixels.astype(np.float32)
    reach = (int(np.ptp(rows)) + 4, int(np.ptp(columns)) + 4)
    stride = max(2, max(height, width) // 32)
    found: tuple[float, tuple[int, int]] | None = None
    for down in range(-height + stride, height, stride):
        for across in range(-width + stride, width, stride):
            if abs(down) < reach[0] and abs(across) < reach[1]:
                continue
            if not _covers(hole, (down, across)):
                continue
            misfit = float(
                np.abs(values - np.roll(values, (down, across), axis=(0, 1)))[rim].mean()
            )
            if found is None or misfit < found[0]:
                found = misfit, (down, across)
    return None if found is None else found[1]


def _covers(hole: BoolArray, step: tuple[int, int]) -> bool:
    rows, columns = np.nonzero(hole)
    rows, columns = rows - step[0], columns - step[1]
    is_inside = (rows >= 0) & (rows < hole.shape[0]) & (columns >= 0) & (columns < hole.shape[1])
    return bool(is_inside.all()) and not hole[rows, columns].any()


def _from_elsewhere(
    pixels: ByteArray, smooth: FloatArray, hole: BoolArray, step: tuple[int, int]
) -> FloatArray:
    """Return another part of the image moved over the hole, half way to the tones that suit the rim."""
    import cv2

    moved = np.roll(pixels, step, axis=(0, 1)).astype(np.float32)
    spread = max(4.0, max(hole.shape) / 16)
    tones = cv2.GaussianBlur(smooth.astype(np.float32), (0, 0), spread) - cv2.GaussianBlur(
        moved, (0, 0), spread
    )
    return np.asarray(
        np.where(hole[..., None], moved + TONES_TAKEN * tones, smooth), dtype=np.float32
    )


def _grain(cut: Cut) -> FloatArray:
    """Return noise as strong as the fine detail around the object, so that what was filled does not look smooth."""
    import cv2

    grey = cut.pixels.astype(np.float32).mean(axis=2)
    detail = (grey - cv2.GaussianBlur(grey, (0, 0), 1.5))[cut.alpha < 0.02]  # noqa: PLR2004
    spread = min(8.0, float(np.median(np.abs(detail))) * 1.5) if len(detail) else 0.0
    return np.asarray(
        spread * generator(0, "grain").standard_normal(cut.alpha.shape), dtype=np.float32
    )


def square_view(backdrop: Backdrop, *, side: int, anchor: tuple[float, float]) -> ByteArray:
    """Return the largest square of a backdrop; what was removed from it comes as near as possible to the anchor (shares x, y)."""
    import cv2

    height, width = backdrop.pixels.shape[:2]
    length = min(height, width)
    hole = backdrop.hole or (0.5, 0.5)
    left = round(min(max(hole[0] * width - anchor[0] * length, 0), width - length))
    top = round(min(max(hole[1] * height - anchor[1] * length, 0), height - length))
    return resized(
        backdrop.pixels[top : top + length, left : left + length], side, side, cv2.INTER_CUBIC
    )


def own_view(cut: Cut, pixels: ByteArray, *, side: int) -> tuple[ByteArray, FloatArray]:
    """Return the largest square around the object of an image of the cut's size, and the object's alpha in it."""
    import cv2

    height, width = cut.alpha.shape
    length = min(height, width)
    box = cut.box
    top = round(min(max(0.5 * (box[0] + box[2] - length), 0), height - length))
    left = round(min(max(0.5 * (box[1] + box[3] - length), 0), width - length))
    window = slice(top, top + length), slice(left, left + length)
    alpha = cv2.resize(
        cut.alpha[window],
        (side, side),
        interpolation=cv2.INTER_AREA if side < length else cv2.INTER_LINEAR,
    )
    return resized(pixels[window], side, side, cv2.INTER_CUBIC), np.asarray(alpha, dtype=np.float32)


def painted(colour: str, *, side: int) -> ByteArray:
    """Return a plain backdrop in a colour, a little lighter above than below; `plain` is light grey."""
    import cv2

    lightness, *hue = COLOURS.get(colour, PLAIN)
    lab = np.empty((side, side, 3), dtype=np.float32)
    lab[..., 0] = np.clip(
        lightness + np.linspace(0.5, -0.5, side, dtype=np.float32) * PAINT_SHADE, 2, 98
    )[:, None]
    lab[..., 1:] = hue
    return as_pixels(cv2.cvtColor(lab, cv2.COLOR_LAB2RGB) * 255.0)


def resized(pixels: ByteArray, width: int, height: int, enlarging: int) -> ByteArray:
    import cv2

    is_smaller = width * height < pixels.shape[0] * pixels.shape[1]
    return np.asarray(
        cv2.resize(
            pixels, (width, height), interpolation=cv2.INTER_AREA if is_smaller else enlarging
        ),
        dtype=np.uint8,
    )
