"""Background textures of the planted scenes, muted so that the coloured objects stand out."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from weakspot.core.arrays import AnyArray, DoubleArray

Texture = Callable[[int, np.random.Generator], DoubleArray]

LIGHT = np.array([176.0, 170.0, 160.0])
DARK = np.array([104.0, 100.0, 96.0])
STRIPE = 0.5
DOT = 0.28
JOINT = (0.16, 0.07)


def _grid(side: int) -> tuple[DoubleArray, DoubleArray]:
    steps = (np.arange(side) + 0.5) / side
    rows, columns = np.meshgrid(steps, steps, indexing="ij")
    return rows, columns


def _mixed(share: AnyArray, *, low: DoubleArray = DARK, high: DoubleArray = LIGHT) -> DoubleArray:
    return np.asarray(low + np.asarray(share, dtype=np.float64)[..., None] * (high - low))


def _plain(side: int, _generator: np.random.Generator) -> DoubleArray:
    return _mixed(np.full((side, side), 0.5))


def _striped(side: int, generator: np.random.Generator) -> DoubleArray:
    rows, columns = _grid(side)
    return _mixed(((rows + columns) * 5 + generator.random()) % 1.0 < STRIPE)


def _checked(side: int, generator: np.random.Generator) -> DoubleArray:
    rows, columns = _grid(side)
    across, down = generator.random(2)
    return _mixed((np.floor(rows * 6 + down) + np.floor(columns * 6 + across)) % 2)


def _dotted(side: int, generator: np.random.Generator) -> DoubleArray:
    rows, columns = _grid(side)
    across, down = generator.random(2)
    distance = np.hypot((rows * 7 + down) % 1.0 - 0.5, (columns * 7 + across) % 1.0 - 0.5)
    return _mixed(distance < DOT, low=LIGHT, high=DARK - 24.0)


def _grassy(side: int, generator: np.random.Generator) -> DoubleArray:
    blades = generator.random((side, side))
    length = max(side // 10, 2)
    drawn = np.mean([np.roll(blades, step, axis=0) for step in range(length)], axis=0)
    spread = (drawn - drawn.min()) / max(float(np.ptp(drawn)), 1e-9)
    return _mixed(spread, low=np.array([34.0, 62.0, 26.0]), high=np.array([142.0, 168.0, 84.0]))


def _gradient(side: int, _generator: np.random.Generator) -> DoubleArray:
    rows, columns = _grid(side)
    return _mixed(rows * 0.85 + columns * 0.15, low=np.array([216.0, 206.0, 190.0]), high=np.array([56.0, 58.0, 66.0]))


def _wavy(side: int, generator: np.random.Generator) -> DoubleArray:
    rows, columns = _grid(side)
    height = rows * 7 + 0.35 * np.sin(2 * np.pi * (columns * 2 + generator.random()))
    return _mixed(
        0.5 + 0.5 * np.sin(2 * np.pi * (height + generator.random())),
        low=np.array([74.0, 104.0, 122.0]),
        high=np.array([158.0, 182.0, 190.0]),
    )


def _brick(side: int, generator: np.random.Generator) -> DoubleArray:
    rows, columns = _grid(side)
    course = np.floor(rows * 7)
    along = (columns * 3.5 + 0.5 * (course % 2) + generator.random()) % 1.0
    is_mortar = (rows * 7 % 1.0 < JOINT[0]) | (along < JOINT[1])
    return _mixed(is_mortar, low=np.array([134.0, 88.0, 74.0]), high=np.array([190.0, 182.0, 170.0]))


TEXTURES: Mapping[str, Texture] = MappingProxyType(
    {
        "plain": _plain,
        "striped": _striped,
        "checked": _checked,
        "dotted": _dotted,
        "grassy": _grassy,
        "gradient": _gradient,
        "wavy": _wavy,
        "brick": _brick,
    }
)
