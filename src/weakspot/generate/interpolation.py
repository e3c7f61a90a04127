"""Rotating the vector of a caption towards or away from a failure direction, for generators that draw what a vector says."""

from collections.abc import Sequence

import numpy as np

from weakspot.core.arrays import AnyArray, DoubleArray, FloatArray
from weakspot.core.errors import ConfigError

SMALLEST_ANGLE = 1e-6
LARGEST_ALPHA = 1.0


def slerp(first: AnyArray, second: AnyArray, alpha: float) -> FloatArray:
    """Return the unit vector at a share of the way along the arc from one vector to another.

    Where the vectors are parallel there is no arc and the first is returned; where they point in opposite directions there is no
    one shortest arc, and a fixed one of them is taken.

    Args:
        first: [d], any length but zero.
        second: [d], any length but zero.
        alpha: 0 for the first vector, 1 for the second.

    Raises:
        ConfigError: if a vector is zero or not finite, the two differ in length, or alpha is outside [0, 1].

    >>> slerp(np.array([1.0, 0.0]), np.array([0.0, 1.0]), 0.5).round(4).tolist()
    [0.707099974155426, 0.707099974155426]
    >>> slerp(np.array([2.0, 0.0]), np.array([0.0, 1.0]), 0.0).tolist()
    [1.0, 0.0]
    """
    if not 0.0 <= alpha <= LARGEST_ALPHA:
        raise ConfigError("The share of a rotation lies between 0 and 1.", given=alpha)
    start, end = _unit(first), _unit(second)
    if start.shape != end.shape:
        raise ConfigError("Vectors of two spaces cannot be mixed.", given=(len(start), len(end)))
    # The angle from both distances is exact for nearly parallel and nearly opposite vectors, where its cosine is not.
    angle = 2.0 * np.arctan2(np.linalg.norm(start - end), np.linalg.norm(start + end))
    if angle < SMALLEST_ANGLE:
        return np.asarray(start, dtype=np.float32)
    across = _across(start, end) if angle > np.pi - SMALLEST_ANGLE else _unit(end - (end @ start) * start)
    rotated = np.cos(alpha * angle) * start + np.sin(alpha * angle) * across
    return np.asarray(_unit(rotated), dtype=np.float32)


def harder_and_easier(reference: AnyArray, direction: AnyArray, alphas: Sequence[float]) -> tuple[FloatArray, FloatArray]:
    """Return the vector of a caption, rotated by each share towards a failure direction, and away from it.

    Args:
        reference: [d] vector of the caption that could stand under every picture of the class.
        direction: [d] normal of the plane between failures and successes; it points to the failures.
        alphas: shares of the rotation, 0 for the reference itself; up to 0.3 pictures still show the class.

    Returns:
        Unit vectors [k, d] of the harder series, and of the easier one.

    >>> harder, easier = harder_and_easier(np.array([1.0, 0.0]), np.array([0.0, 1.0]), [0.0, 1 / 3])
    >>> harder.round(3).tolist() == [[1.0, 0.0], np.float32([0.866, 0.5]).tolist()]
    True
    >>> bool(np.allclose(easier, harder * [1, -1]))
    True
    """
    away = -np.asarray(direction, dtype=np.float64)
    harder = [slerp(reference, direction, alpha) for alpha in alphas]
    easier = [slerp(reference, away, alpha) for alpha in alphas]
    shape = (len(alphas), np.asarray(reference).size)
    return np.array(harder, dtype=np.float32).reshape(shape), np.array(easier, dtype=np.float32).reshape(shape)


def _unit(vector: AnyArray) -> DoubleArray:
    values = np.asarray(vector, dtype=np.float64)
    largest = float(np.max(np.abs(values), initial=0.0))
    if values.ndim != 1 or not np.isfinite(largest) or largest == 0.0:
        raise ConfigError("A vector to rotate must be a row of finite numbers that are not all zero.", given=values.shape)
    scaled = values / largest
    return np.asarray(scaled / np.linalg.norm(scaled), dtype=np.float64)


def _across(start: DoubleArray, end: DoubleArray) -> DoubleArray:
    """Return a fixed direction at right angles to a vector, for rotations to its opposite."""
    if len(start) == 1:
        raise ConfigError("In one dimension nothing can be rotated.", given=(start.tolist(), end.tolist()))
    axis = np.zeros_like(start)
    axis[int(np.argmin(np.abs(start)))] = 1.0
    return _unit(axis - (axis @ start) * start)
