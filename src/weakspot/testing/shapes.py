"""Outlines of the objects in planted scenes, as polygons around the origin that fit the unit circle."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from weakspot.core.arrays import AnyArray, DoubleArray

ROUND = 48


def _regular(angles: AnyArray, lengths: AnyArray) -> DoubleArray:
    turned = np.radians(angles) - np.pi / 2
    return np.stack([lengths * np.cos(turned), lengths * np.sin(turned)], axis=1)


def _arc(start: float, stop: float) -> DoubleArray:
    turns = np.radians(np.linspace(start, stop, ROUND))
    return np.stack([np.cos(turns), np.sin(turns)], axis=1)


def _star() -> DoubleArray:
    return _regular(np.arange(10) * 36.0, np.where(np.arange(10) % 2 == 0, 1.0, 0.42))


def _cross() -> DoubleArray:
    arm = 0.3
    quarter = np.array([[-arm, -1.0], [arm, -1.0], [arm, -arm]])
    turns = [np.array([[0, -1], [1, 0]]), np.array([[-1, 0], [0, -1]]), np.array([[0, 1], [-1, 0]])]
    return np.concatenate([quarter, *(quarter @ turn.T for turn in turns)])


def _heart() -> DoubleArray:
    turns = np.linspace(0.0, 2 * np.pi, ROUND)
    across = 16 * np.sin(turns) ** 3
    down = -(13 * np.cos(turns) - 5 * np.cos(2 * turns) - 2 * np.cos(3 * turns) - np.cos(4 * turns))
    return np.stack([across, down - 2.0], axis=1) / 16.5


def _crescent() -> DoubleArray:
    outer = _arc(60.0, 300.0)
    first, last = outer[0], outer[-1]
    turns = np.linspace(0.0, np.pi, ROUND)
    down = last[1] + (first[1] - last[1]) * (0.5 - 0.5 * np.cos(turns))
    return np.concatenate([outer, np.stack([last[0] - 0.95 * np.sin(turns), down], axis=1)])


OUTLINES: Mapping[str, DoubleArray] = MappingProxyType(
    {
        "disc": _arc(0.0, 360.0),
        "square": _regular(np.array([45.0, 135.0, 225.0, 315.0]), np.full(4, 1.18)),
        "triangle": _regular(np.array([0.0, 120.0, 240.0]), np.full(3, 1.15)),
        "star": _star(),
        "cross": _cross(),
        "ring": _arc(0.0, 360.0),
        "heart": _heart(),
        "crescent": _crescent(),
    }
)
HOLES: Mapping[str, float] = MappingProxyType({"ring": 0.55})
