"""The object of an image, cut out by its mask."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weakspot.core.arrays import BoolArray, ByteArray, FloatArray

INSIDE = 0.5
LEAST_SHARE = 0.01
MOST_SHARE = 0.92
MOST_CONTACT = 0.06
MOST_IN_PLACE = 0.7
NO_OBJECT = "hardly anything was found"
ALL_OBJECT = "nearly the whole image was taken for the object"


@dataclass(frozen=True, kw_only=True, eq=False)
class Cut:
    """An object, cut out.

    Args:
        pixels: the image that it is in [h, w, 3].
        alpha: how much of each pixel is object [h, w], 0 to 1, soft at the outline.
        is_given: whether its mask came with the data instead of from a segmenter.
    """

    pixels: ByteArray
    alpha: FloatArray
    is_given: bool = False

    @property
    def box(self) -> tuple[int, int, int, int]:
        """Return top, left, bottom, right of the object."""
        rows, columns = (
            np.flatnonzero((self.alpha > INSIDE).any(axis=1)),
            np.flatnonzero((self.alpha > INSIDE).any(axis=0)),
        )
        return int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1

    @cached_property
    def is_whole(self) -> bool:
        """Whether all of the object is within the image, so that it can be put elsewhere: its outline hardly meets the edge."""
        import cv2

        mask = (self.alpha > INSIDE).astype(np.uint8)
        outline = mask_between(cv2.erode(mask, np.ones((3, 3), dtype=np.uint8)), mask)
        edge = np.ones(mask.shape, dtype=np.bool_)
        edge[1:-1, 1:-1] = False
        n_edge = int((outline & edge).sum()) + int((mask[edge] > 0).sum())
        return n_edge <= MOST_CONTACT * max(1, int(outline.sum()))

    @property
    def has_room(self) -> bool:
        """Whether enough is seen behind the object for another backdrop to show, with the object where it is."""
        return float((self.alpha > INSIDE).mean()) <= MOST_IN_PLACE


def cut_by_mask(pixels: ByteArray, mask: ByteArray) -> Cut | str:
    """Return the object under a mask [h, w] where white is the object, or why there is none."""
    import cv2

    height, width = pixels.shape[:2]
    fitted = cv2.resize(mask, (width, height), interpolation=cv2.INTER_AREA)
    is_object = fitted > 127  # noqa: PLR2004
    if not is_object.any():
        return "the mask is empty"
    alpha = cv2.GaussianBlur(is_object.astype(np.float32), (0, 0), 0.8)
    return Cut(pixels=pixels, alpha=alpha, is_given=True)


def cut_by_coverage(pixels: ByteArray, coverage: FloatArray) -> Cut | str:
    """Return the object that a segmenter has found, at any size, or why there is none."""
    import cv2

    height, width = pixels.shape[:2]
    alpha = cv2.resize(
        np.asarray(coverage, dtype=np.float32), (width, height), interpolation=cv2.INTER_LINEAR
    )
    share = float((alpha > INSIDE).mean())
    if share < LEAST_SHARE:
        return NO_OBJECT
    if share > MOST_SHARE:
        return ALL_OBJECT
    return Cut(pixels=pixels, alpha=np.clip(alpha, 0.0, 1.0))


def mask_between(inner: ByteArray, outer: ByteArray) -> BoolArray:
    return np.asarray((outer > 0) & (inner == 0))
