"""Draws planted scenes: the same scene and instance number always give the same pixels."""

import numpy as np
from PIL import Image, ImageDraw

from weakspot.core.arrays import ByteArray, DoubleArray
from weakspot.core.errors import DataError
from weakspot.core.seeding import generator as named_generator
from weakspot.testing.marker import CELLS, strip_height, write_marker
from weakspot.testing.scenes import Scene
from weakspot.testing.shapes import HOLES, OUTLINES
from weakspot.testing.textures import TEXTURES

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
ANCHOR = {"middle": (0.5, 0.5), "left": (0.24, 0.5), "right": (0.76, 0.5), "top": (0.5, 0.26), "bottom": (0.5, 0.74)}
NUMBER = {"one": 1, "two": 2, "three": 3}
OUTLINE = (24, 22, 24)


def render(scene: Scene, *, side: int = SIDE, marked: bool = True) -> Image.Image:
    """Draw a scene as an RGB picture.

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


def _objects(scene: Scene, side: int, random: np.random.Generator) -> tuple[DoubleArray, DoubleArray]:
    fine = side * OVERSAMPLING
    canvas = Image.new("RGBA", (fine, fine), (*OUTLINE, 0))
    draw = ImageDraw.Draw(canvas)
    for kind, centre in _placed(scene, side, random):
        _draw_object(draw, kind, centre * fine, RADIUS[scene.size] * fine, PAINT[scene.colour], random)
    small = np.asarray(canvas.convert("RGBa").resize((side, side), Image.Resampling.BOX), dtype=np.float64)
    cover = small[..., 3:] / 255.0
    return small[..., :3] / np.maximum(cover, 1e-6), cover


def _placed(scene: Scene, side: int, random: np.random.Generator) -> list[tuple[str, DoubleArray]]:
    kinds = list(scene.kinds) if len(scene.kinds) > 1 else list(scene.kinds) * NUMBER[scene.count]
    radius = RADIUS[scene.size]
    spread = 1.15 / np.sin(np.pi / len(kinds)) if len(kinds) > 1 else 0.0
    first_turn = random.uniform(-0.25, 0.25) + np.pi / 6 * (len(kinds) % 2)
    turns = first_turn + 2 * np.pi * np.arange(len(kinds)) / len(kinds)
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
    draw.polygon([(float(across), float(down)) for across, down in shape], fill=(*paint, 255), outline=(*OUTLINE, 255), width=width)
    if kind in HOLES:
        inner = HOLES[kind] * radius
        box = (centre[0] - inner, centre[1] - inner, centre[0] + inner, centre[1] + inner)
        draw.ellipse(box, fill=(*OUTLINE, 0), outline=(*OUTLINE, 255), width=width)
