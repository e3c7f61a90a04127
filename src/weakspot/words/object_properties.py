"""What can be measured of the object in an image once its mask is known: size in the frame, place, colours, and what is behind it."""

import numpy as np
from PIL import Image
from scipy import ndimage

from weakspot.core.arrays import BoolArray, FloatArray
from weakspot.core.record import Record
from weakspot.words.properties import COLOUR_NAMES, GREY_WEIGHTS, colour_codes

SIDE = 128
INSIDE, OUTSIDE = 0.5, 0.1
MIN_PIXELS = 20
EDGE = 24.0
OUTLINE = 2


class ObjectMeasures(Record):
    """Numbers about an object and its background.

    Args:
        refused: why nothing is known; the rest is zero then.
        share: of the image that the object covers.
        across: middle of the object, from 0 (left) to 1 (right).
        down: middle of the object, from 0 (top) to 1 (bottom).
        n_edges: edges of the image that the object touches.
        colours: share of the object in every colour of `COLOUR_NAMES`.
        behind: share of the background in every colour; empty where nothing of it is seen.
        clutter: share of the background that is edges; None where nothing of it is seen.
    """

    refused: str = ""
    share: float = 0.0
    across: float = 0.0
    down: float = 0.0
    n_edges: int = 0
    colours: tuple[float, ...] = ()
    behind: tuple[float, ...] = ()
    clutter: float | None = None


def measure_object(image: Image.Image, coverage: FloatArray) -> ObjectMeasures:
    """Return the measures of an object.

    Args:
        image: in colour.
        coverage: [height, width] of the image, from 0 (elsewhere) to 1 (object).
    """
    scale = SIDE / max(image.size)
    size = (max(round(image.width * scale), 1), max(round(image.height * scale), 1))
    small = image.convert("RGB").resize(size, Image.Resampling.BOX)
    mask = Image.fromarray(np.asarray(coverage, dtype=np.float32)).resize(
        size, Image.Resampling.BOX
    )
    cover = np.asarray(mask)
    inside, outside = cover > INSIDE, cover < OUTSIDE
    if inside.sum() < MIN_PIXELS:
        return ObjectMeasures(refused="the object has too few pixels")
    down, across = np.nonzero(inside)
    edges = (inside[0], inside[-1], inside[:, 0], inside[:, -1])
    codes = colour_codes(np.asarray(small.convert("HSV")))
    has_background = bool(outside.sum() >= MIN_PIXELS)
    return ObjectMeasures(
        share=round(float(inside.mean()), 4),
        across=round(float((across.mean() + 0.5) / size[0]), 4),
        down=round(float((down.mean() + 0.5) / size[1]), 4),
        n_edges=sum(bool(edge.any()) for edge in edges),
        colours=_shares(codes[inside]),
        behind=_shares(codes[outside]) if has_background else (),
        clutter=_clutter(small, outside) if has_background else None,
    )


def _shares(codes: FloatArray) -> tuple[float, ...]:
    counts = np.bincount(codes.astype(np.int64), minlength=len(COLOUR_NAMES))
    return tuple(round(float(one), 4) for one in counts / counts.sum())


def _clutter(image: Image.Image, background: BoolArray) -> float:
    """Return the share of background pixels at which grey changes steeply; the outline of the object does not count."""
    grey = np.asarray(image, dtype=np.float64) @ GREY_WEIGHTS
    down, across = np.gradient(grey) if min(grey.shape) > 1 else (np.zeros_like(grey),) * 2
    steep = np.hypot(down, across) * 2 > EDGE
    apart = ndimage.binary_erosion(background, iterations=OUTLINE, border_value=1)
    return round(float(steep[apart].mean()), 4) if apart.any() else 0.0
