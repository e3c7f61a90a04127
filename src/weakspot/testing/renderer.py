"""Draws planted scenes: the same scene and instance number always give the same pixels."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from PIL import Image, ImageDraw

from weakspot.core.arrays import AnyArray, ByteArray, DoubleArray
from weakspot.core.errors import DataError
from weakspot.core.seeding import generator as named_generator
from weakspot.testing.marker import CELLS, strip_height, write_marker
from weakspot.testing.scenes import Scene

Texture = Callable[[int, np.random.Generator], DoubleArray]

LIGHT = np.array([176.0, 170.0, 160.0])
DARK = np.array([104.0, 100.0, 96.0])
STRIPE = 0.5
DOT = 0.28
CLIP = (0.16, 0.07)


def _grid(side: int) -> tuple[DoubleArray, DoubleArray]:
    steps = (np.arange(side) + 0.5) / side
    rows, columns = np.meshgrid(steps, steps, indexing="ij")
    return rows, columns


def _mix(share: AnyArray, *, low: DoubleArray = DARK, high: DoubleArray = LIGHT) -> DoubleArray:
    return np.asarray(low + np.asarray(share, dtype=np.float64)[..., None] * (high - low))


def _plain(side: int, _generator: np.random.Generator) -> DoubleArray:
    return _mix(np.full((side, side), 0.5))


def _striped(side: int, generator: np.random.Generator) -> DoubleArray:
    rows, columns = _grid(side)
    return _mix(((rows + columns) * 5 + generator.random()) % 1.0 < STRIPE)


def _check(side: int, generator: np.random.Generator) -> DoubleArray:
    rows, columns = _grid(side)
    across, down = generator.random(2)
    return _mix((np.floor(rows * 6 + down) + np.floor(columns * 6 + across)) % 2)


def _dotted(side: int, generator: np.random.Generator) -> DoubleArray:
    rows, columns = _grid(side)
    across, down = generator.random(2)
    distance = np.hypot((rows * 7 + down) % 1.0 - 0.5, (columns * 7 + across) % 1.0 - 0.5)
    return _mix(distance < DOT, low=LIGHT, high=DARK - 24.0)


def _grassy(side: int, generator: np.random.Generator) -> DoubleArray:
    blades = generator.random((side, side))
    length = max(side // 10, 2)
    drawn = np.mean([np.roll(blades, step, axis=0) for step in range(length)], axis=0)
    spread = (drawn - drawn.min()) / max(float(np.ptp(drawn)), 1e-9)
    return _mix(spread, low=np.array([34.0, 62.0, 26.0]), high=np.array([142.0, 168.0, 84.0]))


def _gradient(side: int, _generator: np.random.Generator) -> DoubleArray:
    rows, columns = _grid(side)
    return _mix(
        rows * 0.85 + columns * 0.15,
        low=np.array([216.0, 206.0, 190.0]),
        high=np.array([56.0, 58.0, 66.0]),
    )


def _wavy(side: int, generator: np.random.Generator) -> DoubleArray:
    rows, columns = _grid(side)
    height = rows * 7 + 0.35 * np.sin(2 * np.pi * (columns * 2 + generator.random()))
    return _mix(
        0.5 + 0.5 * np.sin(2 * np.pi * (height + generator.random())),
        low=np.array([74.0, 104.0, 122.0]),
        high=np.array([158.0, 182.0, 190.0]),
    )


def _brick(side: int, generator: np.random.Generator) -> DoubleArray:
    rows, columns = _grid(side)
    course = np.floor(rows * 7)
    along = (columns * 3.5 + 0.5 * (course % 2) + generator.random()) % 1.0
    is_mortar = (rows * 7 % 1.0 < CLIP[0]) | (along < CLIP[1])
    return _mix(is_mortar, low=np.array([134.0, 88.0, 74.0]), high=np.array([190.0, 182.0, 170.0]))


TEXTURES: Mapping[str, Texture] = MappingProxyType(
    {
        "plain": _plain,
        "striped": _striped,
        "checked": _check,
        "dotted": _dotted,
        "grassy": _grassy,
        "gradient": _gradient,
        "wavy": _wavy,
        "brick": _brick,
    }
)


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


SIDE = 64
OVERSAMPLING = 4
PAINT: dict[str, tuple[int, int, int]] = {
    "red": (214, 28, 36),
    "orange": (246, 134, 16),
    "yellow": (250, 224, 34),
    "green": (26, 158, 58),
    "blue": (30, 84, 214),
    "purple": (128, 44, 170),
    "pink": (255, 150, 200),
    "white": (252, 252, 250),
}
RADIUS = {"small": 0.085, "medium": 0.13, "large": 0.185}
ANCHOR = {
    "middle": (0.5, 0.5),
    "left": (0.24, 0.5),
    "right": (0.76, 0.5),
    "top": (0.5, 0.26),
    "bottom": (0.5, 0.74),
}
NUMBER = {"one": 1, "two": 2, "three": 3}
OUTLINE = (24, 22, 24)


def render(scene: Scene, *, side: int = SIDE, marked: bool = True) -> Image.Image:
    """Draw a scene as an RGB image.

    Args:
        scene: what to draw.
        side: width and height in pixels, at least 32.
        marked: whether the machine-readable strip is drawn that the fakes read; leave it out to test real models.
    """
    if side < 2 * CELLS:
        raise DataError("A scene needs at least 32 pixels.", given=side)
    random = named_generator(scene.instance, "planted picture", scene.caption)
    backdrop = TEXTURES[scene.background](side, random)
    paint, cover = _objects(scene, side, random)
    pixels = backdrop * (1.0 - cover) + paint * cover
    lit = _lit(pixels + random.normal(0.0, 3.0, pixels.shape), scene.lighting)
    return Image.fromarray(write_marker(lit, scene) if marked else lit)


def _lit(pixels: DoubleArray, lighting: str) -> ByteArray:
    if lighting == "dark":
        pixels = pixels * 0.38
    elif lighting == "bright":
        pixels = 255.0 - (255.0 - pixels * 1.1) * 0.62
    return np.clip(np.round(pixels), 0, 255).astype(np.uint8)


def _objects(
    scene: Scene, side: int, random: np.random.Generator
) -> tuple[DoubleArray, DoubleArray]:
    fine = side * OVERSAMPLING
    canvas = Image.new("RGBA", (fine, fine), (*OUTLINE, 0))
    draw = ImageDraw.Draw(canvas)
    for kind, centre in _place(scene, side, random):
        _draw_object(
            draw, kind, centre * fine, RADIUS[scene.size] * fine, PAINT[scene.colour], random
        )
    small = np.asarray(
        canvas.convert("RGBa").resize((side, side), Image.Resampling.BOX), dtype=np.float64
    )
    cover = small[..., 3:] / 255.0
    return small[..., :3] / np.maximum(cover, 1e-6), cover


def _place(scene: Scene, side: int, random: np.random.Generator) -> list[tuple[str, DoubleArray]]:
    kinds = list(scene.kinds) if len(scene.kinds) > 1 else list(scene.kinds) * NUMBER[scene.count]
    radius = RADIUS[scene.size]
    spread = 1.15 / np.sin(np.pi / len(kinds)) if len(kinds) > 1 else 0.0
    first_round = random.uniform(-0.25, 0.25) + np.pi / 6 * (len(kinds) % 2)
    turns = first_round + 2 * np.pi * np.arange(len(kinds)) / len(kinds)
    spots = spread * radius * np.stack([np.cos(turns), np.sin(turns)], axis=1)
    reach = np.abs(spots).max(axis=0) + 1.15 * radius
    margin = np.array([0.0, strip_height(side) / side])
    anchor = np.array(ANCHOR[scene.position]) + random.uniform(-0.03, 0.03, 2)
    anchor = np.clip(anchor, np.minimum(reach + margin, 0.5), np.maximum(1.0 - reach - margin, 0.5))
    return [(kind, anchor + spot) for kind, spot in zip(kinds, spots, strict=True)]


def _draw_object(
    draw: ImageDraw.ImageDraw,
    kind: str,
    centre: DoubleArray,
    radius: float,
    paint: tuple[int, int, int],
    random: np.random.Generator,
) -> None:
    angle = np.radians(random.uniform(-12.0, 12.0))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    shape = OUTLINES[kind] @ turn.T * radius + centre
    width = max(round(0.13 * radius), 1)
    draw.polygon(
        [(float(across), float(down)) for across, down in shape],
        fill=(*paint, 255),
        outline=(*OUTLINE, 255),
        width=width,
    )
    if kind in HOLES:
        inner = HOLES[kind] * radius
        box = (centre[0] - inner, centre[1] - inner, centre[0] + inner, centre[1] + inner)
        draw.ellipse(box, fill=(*OUTLINE, 0), outline=(*OUTLINE, 255), width=width)
