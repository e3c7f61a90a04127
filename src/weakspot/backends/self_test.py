"""A known picture and the vector it must have: does the image tower compute right on this machine?"""

import numpy as np

from weakspot.core.arrays import AnyArray, ByteArray, FloatArray, unit_rows
from weakspot.core.errors import ModelError

KNOWN_VECTOR = "known_picture_vector"
LOWEST_COSINE = 0.99


# Parts of the known picture as (top, bottom, left, right) and (red, green, blue).
_BOXES = (
    ((96, 150, 20, 76), (120, 105, 100)),
    ((114, 166, 98, 158), (190, 40, 35)),
    ((104, 114, 90, 166), (90, 50, 40)),
    ((140, 166, 121, 135), (70, 40, 20)),
    ((120, 134, 104, 118), (230, 235, 250)),
)
_SUN = ((48, 170, 26), (250, 220, 60))
_HORIZON = 140


def known_picture(side: int = 224) -> ByteArray:
    """Draw a house in a meadow [side, side, 3] with integer arithmetic, the same on every machine."""
    down, across = np.mgrid[0:side, 0:side].astype(np.int64) * 224 // side
    sky = np.stack([110 + down // 3, 160 + down // 3, np.full_like(down, 235)], axis=2)
    blades = (across * 7 + down * 13) % 41
    grass = np.stack([50 + blades, 130 + (across * 11 + down * 5) % 50, 40 + down % 30], axis=2)
    picture = np.where((down >= _HORIZON)[..., None], grass, sky)
    (row, column, radius), yellow = _SUN
    picture[(across - column) ** 2 + (down - row) ** 2 < radius**2] = yellow
    for (top, bottom, left, right), colour in _BOXES:
        picture[(down >= top) & (down < bottom) & (across >= left) & (across < right)] = colour
    return picture.astype(np.uint8)


def require_known_vector(made: AnyArray, expected: AnyArray, *, where: str) -> float:
    """Refuse an image tower that gives the known picture another vector.

    Args:
        made: What the tower gave for `known_picture()`, [d].
        expected: What it must give, [d].
        where: The file of the tower, for the message.

    Returns:
        The cosine of the two.
    """
    cosine = cosine_of(made, expected)
    if not cosine >= LOWEST_COSINE:
        raise ModelError(
            f"The image tower fails its self-test: the known picture gets a vector at cosine {cosine:.3f}, not >= {LOWEST_COSINE}.",
            where=where,
            given="most often int8 kernels that overflow on a processor without VNNI",
            fix="Delete the cached tower and let it be de-quantised again, or use another embedder.",
        )
    return cosine


def cosine_of(first: AnyArray, second: AnyArray) -> float:
    """Cosine of two vectors [d]; nan if one is not finite."""
    pair: FloatArray = unit_rows(np.stack([np.asarray(first).ravel(), np.asarray(second).ravel()]))
    return float(pair[0] @ pair[1])
