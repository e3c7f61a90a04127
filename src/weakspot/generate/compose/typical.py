"""Colours that pictures of a class show in the middle rather than at the edge: what a cut of the class should be made of."""

from collections.abc import Iterable

import numpy as np

from weakspot.core.arrays import BoolArray, ByteArray, FloatArray, IntArray
from weakspot.generate.compose.cutting import Cut

THUMBNAIL = 48
MIDDLE = 0.5
STEPS = (25.0, 16.0, 16.0)
N_STEPS = (5, 16, 16)
RARE = 2e-3
LEAST_TYPICAL = 0.0


class TypicalColours:
    """How much more frequent each colour is in the middle of some pictures than around it.

    Args:
        pictures: pixels [h, w, 3] of pictures of one class.
    """

    def __init__(self, pictures: Iterable[ByteArray]) -> None:
        is_middle = _middle()
        counts = np.zeros((2, int(np.prod(N_STEPS))))
        for pixels in pictures:
            colours = _colours(pixels)
            for row, part in enumerate((is_middle, ~is_middle)):
                counts[row] += np.bincount(colours[part], minlength=counts.shape[1]) / part.sum()
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-9)
        self._log_ratios: FloatArray = np.log((shares[0] + RARE) / (shares[1] + RARE)).astype(np.float32)

    def of(self, cut: Cut) -> float:
        """Return the mean log ratio over an object: above zero for colours of the middle, below for colours of the surroundings."""
        import cv2

        colours = _colours(cut.pixels)
        is_object = cv2.resize(cut.alpha, (THUMBNAIL, THUMBNAIL), interpolation=cv2.INTER_AREA) > MIDDLE
        return float(self._log_ratios[colours[is_object]].mean()) if is_object.any() else 0.0


def _colours(pixels: ByteArray) -> IntArray:
    """Return the number of the colour of every pixel of a thumbnail."""
    import cv2

    small = cv2.resize(pixels, (THUMBNAIL, THUMBNAIL), interpolation=cv2.INTER_AREA)
    lab = cv2.cvtColor(small.astype(np.float32) / 255.0, cv2.COLOR_RGB2LAB) + np.array([0.0, 128.0, 128.0], dtype=np.float32)
    steps = np.clip(np.floor(lab / np.array(STEPS)), 0, np.array(N_STEPS) - 1).astype(np.int64)
    return np.asarray((steps[..., 0] * N_STEPS[1] + steps[..., 1]) * N_STEPS[2] + steps[..., 2], dtype=np.int64)


def _middle() -> BoolArray:
    away = np.abs((np.arange(THUMBNAIL) + 0.5) / THUMBNAIL - 0.5)
    return np.asarray(np.maximum(away[:, None], away[None, :]) < MIDDLE / 2)
