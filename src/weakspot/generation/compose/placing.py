"""Putting cut-out objects on a backdrop: where, how large, in its light, with a shadow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from weakspot.core.arrays import ByteArray, FloatArray
from weakspot.core.seeding import generator
from weakspot.generation.compose.cutting import Cut
from weakspot.generation.compose.edits import as_pixels, mixed

ANCHORS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "": (0.5, 0.57),
        "middle": (0.5, 0.5),
        "left": (0.27, 0.57),
        "right": (0.73, 0.57),
        "top": (0.5, 0.29),
        "bottom": (0.5, 0.74),
    }
)
GROWTH: Mapping[str, float] = MappingProxyType(
    {"": 1.0, "medium": 1.0, "small": 0.45, "large": 1.5}
)
NUMBERS: Mapping[str, int] = MappingProxyType({"one": 1, "two": 2, "three": 3})
USUAL_LENGTH = (0.42, 0.6)
LONGEST = 0.94
JITTER = 0.04
SPOTS: Mapping[int, tuple[tuple[float, float], ...]] = MappingProxyType(
    {
        1: ((0.0, 0.0),),
        2: ((-0.55, 0.0), (0.55, 0.04)),
        3: ((-0.56, 0.24), (0.56, 0.28), (0.0, -0.52)),
    }
)
CROWDING: Mapping[int, float] = MappingProxyType({1: 1.0, 2: 0.8, 3: 0.68})
CORE = 0.95
LIGHT_TAKEN = 0.3
HUE_TAKEN = 0.15
MOST_LIGHT = 12.0
MOST_HUE = 6.0
SHADOW = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class Sprite:
    """An object without its surroundings.

    Args:
        pixels: [h, w, 3]; beyond the outline the object's own colours go on.
        alpha: how much of each pixel is object [h, w].
        length: of its longer side, as a share of the shorter side of its image.
    """

    pixels: ByteArray
    alpha: FloatArray
    length: float


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Where one object goes: its centre and the length of its longer side, as shares of the side of the new image."""

    x: float
    y: float
    length: float


def sprite_of(cut: Cut, *, is_mirrored: bool = False) -> Sprite:
    """Return the object of a cut, in colours of its own up to the outline."""
    top, left, bottom, right = cut.box
    height, width = cut.alpha.shape
    pad = 3
    window = (
        slice(max(0, top - pad), min(height, bottom + pad)),
        slice(max(0, left - pad), min(width, right + pad)),
    )
    alpha = cut.alpha[window]
    clean = own_colours(cut.pixels[window], alpha, spread=max(1.5, max(height, width) / 110))
    step = -1 if is_mirrored else 1
    length = max(bottom - top, right - left) / min(height, width)
    return Sprite(
        pixels=np.ascontiguousarray(clean[:, ::step]),
        alpha=np.ascontiguousarray(alpha[:, ::step]),
        length=length,
    )


def own_colours(pixels: ByteArray, alpha: FloatArray, *, spread: float = 0.0) -> ByteArray:
    """Return an image in which colours of the surroundings that shine through the outline of an object are replaced by its own."""
    import cv2

    spread = spread or max(1.5, max(alpha.shape) / 110)
    core = cv2.erode((alpha > CORE).astype(np.float32), np.ones((3, 3), dtype=np.uint8))
    weight = cv2.GaussianBlur(core, (0, 0), spread)[..., None]
    nearby = cv2.GaussianBlur(pixels.astype(np.float32) * core[..., None], (0, 0), spread)
    nearby = nearby / np.maximum(weight, 1e-3)
    return as_pixels(np.where((core[..., None] > 0) | (weight < 0.02), pixels, nearby))  # noqa: PLR2004


def placements(
    sprites: Sequence[Sprite], *, class_name: str, size: str, position: str, seed: int
) -> list[Placement]:
    """Return where objects go: what size and position leave open is decided by class, seed and object, never by other words."""
    n = len(sprites)
    jitter = generator(seed, "placement", class_name).uniform(-JITTER, JITTER, size=3)
    usual = float(np.clip(sprites[0].length, *USUAL_LENGTH)) * (1.0 + float(jitter[2]))
    length = min(usual * GROWTH[size] * CROWDING[n], LONGEST)
    x, y = ANCHORS[position]
    found = []
    for across, down in SPOTS[n]:
        spot = x + float(jitter[0]) + across * length, y + float(jitter[1]) + down * length
        reach = min(0.5, 0.5 * length + 0.01)
        found.append(
            Placement(
                x=min(max(spot[0], reach), 1 - reach),
                y=min(max(spot[1], reach), 1 - reach),
                length=length,
            )
        )
    return found


def put_on(
    backdrop: ByteArray,
    sprites: Sequence[Sprite],
    places: Sequence[Placement],
    *,
    is_lit: bool = True,
) -> tuple[ByteArray, FloatArray]:
    """Return the backdrop with objects on it, and how much of each pixel is object.

    Args:
        backdrop: [side, side, 3].
        sprites: the objects; those that are lower in the image are in front.
        places: one for each.
        is_lit: whether the objects take some of the backdrop's light and throw a shadow.
    """
    side = backdrop.shape[0]
    pixels, cover = backdrop, np.zeros((side, side), dtype=np.float32)
    for sprite, place in sorted(zip(sprites, places, strict=True), key=lambda pair: pair[1].y):
        layer, alpha = _layer(sprite, place, side)
        if is_lit:
            pixels = _shade(pixels, alpha)
            layer = in_light_of(layer, alpha, backdrop)
        pixels = mixed(pixels, layer, alpha)
        cover = np.maximum(cover, alpha)
    return pixels, cover


def _layer(sprite: Sprite, place: Placement, side: int) -> tuple[ByteArray, FloatArray]:
    import cv2

    height, width = sprite.alpha.shape
    factor = place.length * side / max(height, width)
    size = (max(2, round(width * factor)), max(2, round(height * factor)))
    how = cv2.INTER_AREA if factor < 1 else cv2.INTER_CUBIC
    pixels = cv2.resize(sprite.pixels, size, interpolation=how)
    alpha = np.clip(
        cv2.resize(
            sprite.alpha, size, interpolation=cv2.INTER_AREA if factor < 1 else cv2.INTER_LINEAR
        ),
        0.0,
        1.0,
    )
    left, top = round(place.x * side - size[0] / 2), round(place.y * side - size[1] / 2)
    layer, cover = (
        np.zeros((side, side, 3), dtype=np.uint8),
        np.zeros((side, side), dtype=np.float32),
    )
    to = (
        slice(max(0, top), min(side, top + size[1])),
        slice(max(0, left), min(side, left + size[0])),
    )
    source = (
        slice(to[0].start - top, to[0].stop - top),
        slice(to[1].start - left, to[1].stop - left),
    )
    layer[to], cover[to] = pixels[source], alpha[source]
    return layer, cover


def _shade(pixels: ByteArray, alpha: FloatArray) -> ByteArray:
    import cv2

    rows, columns = (
        np.flatnonzero((alpha > 0.5).any(axis=1)),  # noqa: PLR2004
        np.flatnonzero((alpha > 0.5).any(axis=0)),  # noqa: PLR2004
    )
    if not len(rows):
        return pixels
    height, width = int(np.ptp(rows)) + 1, int(np.ptp(columns)) + 1
    shadow = np.zeros(alpha.shape, dtype=np.float32)
    centre = (int(columns.mean()), int(rows[-1] - 0.05 * height))
    cv2.ellipse(
        shadow, centre, (max(1, int(0.46 * width)), max(1, int(0.1 * height))), 0, 0, 360, 1.0, -1
    )
    soft = cv2.GaussianBlur(shadow, (0, 0), max(1.0, 0.05 * width))
    around = cv2.GaussianBlur(alpha, (0, 0), max(1.0, 0.07 * width))
    return as_pixels(pixels * (1.0 - np.clip(SHADOW * soft + 0.25 * around, 0.0, 0.8))[..., None])


def in_light_of(layer: ByteArray, alpha: FloatArray, backdrop: ByteArray) -> ByteArray:
    """Return an object with some of the light of what is behind it."""
    import cv2

    own = cv2.cvtColor(layer.astype(np.float32) / 255.0, cv2.COLOR_RGB2LAB)
    is_object = alpha > 0.5  # noqa: PLR2004
    if not is_object.any():
        return layer
    behind = cv2.cvtColor(backdrop.astype(np.float32) / 255.0, cv2.COLOR_RGB2LAB).mean(axis=(0, 1))
    lightness = np.clip(
        LIGHT_TAKEN * (behind[0] - own[is_object].mean(axis=0)[0]), -MOST_LIGHT, MOST_LIGHT
    )
    hue = np.clip(HUE_TAKEN * behind[1:], -MOST_HUE, MOST_HUE)
    own = np.clip(
        own + np.array([lightness, *hue], dtype=np.float32), (0, -127, -127), (100, 127, 127)
    ).astype(np.float32)
    return as_pixels(cv2.cvtColor(own, cv2.COLOR_LAB2RGB) * 255.0)
