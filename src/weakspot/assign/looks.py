"""What sets odd-looking images apart, by their pixels alone: squares, noise, burnt and light areas."""

from dataclasses import dataclass

import numpy as np
from PIL import Image

from weakspot.assign.properties import GREY_WEIGHTS
from weakspot.core.arrays import DoubleArray

SIDE, PATCH = 256, 16
SHARE_OF_LINES = 0.18
QUIET = 20
BURNT, WHOLLY_BURNT, LIGHT = 252, 250, 200
_TO_DEVIATION = float(np.sqrt(np.pi / 2) / 6)


@dataclass(frozen=True, kw_only=True)
class Looks:
    """Numbers about the look of an image.

    Args:
        squares: share of all steps of grey that lie on the steepest fifth of columns or of rows, whichever is less; near 1 if the
            image is made of squares.
        noise: deviation of grey from one pixel to the next, in [0, 255], where the image is quietest; after Immerkaer (1996).
        burnt: share of pixels of which some channels, and not all, are at their end.
        light: share of pixels that are nearly white.
    """

    squares: float
    noise: float
    burnt: float
    light: float


def measure_looks(image: Image.Image) -> Looks:
    """Return the looks of an RGB image."""
    small = image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    pixels = np.asarray(small, dtype=np.float64)
    grey = pixels @ GREY_WEIGHTS
    is_burnt = (pixels.max(axis=2) >= BURNT) & (pixels.min(axis=2) < WHOLLY_BURNT)
    return Looks(
        squares=min(_on_few_lines(grey), _on_few_lines(grey.T)),
        noise=_noise(grey),
        burnt=float(is_burnt.mean()),
        light=float((grey > LIGHT).mean()),
    )


def _on_few_lines(grey: DoubleArray) -> float:
    """Return the share of steps between columns that lie on the few columns where they are largest."""
    steps = np.sort(np.abs(np.diff(grey, axis=1)).mean(axis=0))[::-1]
    total = float(steps.sum())
    return float(steps[: int(SHARE_OF_LINES * len(steps))].sum()) / total if total else 0.0


def _noise(grey: DoubleArray) -> float:
    second = grey[:, :-2] - 2 * grey[:, 1:-1] + grey[:, 2:]
    crossed = np.zeros_like(grey)
    crossed[1:-1, 1:-1] = np.abs(second[:-2] - 2 * second[1:-1] + second[2:])
    patches = crossed.reshape(SIDE // PATCH, PATCH, SIDE // PATCH, PATCH).mean(axis=(1, 3))
    return float(np.percentile(patches, QUIET)) * _TO_DEVIATION
