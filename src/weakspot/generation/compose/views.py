"""Other views of the same image: another crop, a little turned, mirrored or not, in another light."""

import numpy as np

from weakspot.core.arrays import ByteArray, FloatArray
from weakspot.generation.compose.edits import as_pixels

VIEWS = 2**32
"""Seeds below this show an object as its own image shows it; every multiple of this that is added is another view."""

CROP = (0.62, 0.9)
MOST_TURNED = 10.0
LIGHT = (0.82, 1.2)
TINT = 0.05


def another_view(
    pixels: ByteArray, alpha: FloatArray, random: np.random.Generator
) -> tuple[ByteArray, FloatArray]:
    """Return a square image as if taken from a little nearer and beside, and the object's alpha [side, side] in it."""
    import cv2

    side = alpha.shape[0]
    crop, turn = random.uniform(*CROP), random.uniform(-MOST_TURNED, MOST_TURNED)
    away = 0.5 * (1.0 - crop) * side
    shift = random.uniform(-away, away, size=2)
    middle = 0.5 * (side - 1)
    turned = cv2.getRotationMatrix2D((middle + shift[0], middle + shift[1]), turn, 1.0 / crop)
    turned[:, 2] -= shift
    if random.integers(2):
        turned[0] *= -1.0
        turned[0, 2] += side - 1
    seen, covered = (
        cv2.warpAffine(
            one, turned, (side, side), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT_101
        )
        for one in (pixels, alpha)
    )
    return np.asarray(seen, dtype=np.uint8), np.clip(covered, 0.0, 1.0).astype(np.float32)


def another_light(pixels: ByteArray, random: np.random.Generator) -> ByteArray:
    """Return the image a little brighter or darker, warmer or colder."""
    warmth = random.uniform(-TINT, TINT)
    gain = random.uniform(*LIGHT) * np.array([1.0 + warmth, 1.0, 1.0 - warmth])
    return as_pixels(pixels * gain)
