"""How a colour that words name looks on objects of a user's own."""

import numpy as np

from weakspot.core.arrays import FloatArray
from weakspot.generation.compose.cutting import INSIDE, Cut
from weakspot.generation.compose.words import COLOURS

LEAST_CHROMA = 20.0
MOST_TURNED = 60.0
LEAST_SHARE = 0.25


def tone_of(cut: Cut, colour: str) -> FloatArray | None:
    """Return the mean of the parts of an object that may be called by a colour, as CIE Lab [3]; None if hardly any may.

    A mask that is not sure also holds leaves, crates and other objects: parts whose hue is more than sixty degrees from that of a
    painter's colour are left out. White, grey and black have no hue; there the whole object counts.
    """
    import cv2

    lab = cv2.cvtColor(cut.pixels.astype(np.float32) / 255.0, cv2.COLOR_RGB2LAB)
    inside = lab[cut.alpha > INSIDE]
    _, *hue = COLOURS[colour]
    if not len(inside):
        return None
    if float(np.hypot(hue[0], hue[1])) >= LEAST_CHROMA:
        apart = np.arctan2(inside[:, 2], inside[:, 1]) - np.arctan2(hue[1], hue[0])
        is_near = np.abs((apart + np.pi) % (2 * np.pi) - np.pi) <= np.radians(MOST_TURNED)
        if is_near.mean() < LEAST_SHARE:
            return None
        inside = inside[is_near]
    return np.asarray(inside.mean(axis=0), dtype=np.float32)
