"""Objects cut out by their masks, and put on a backdrop: where, how large, in its light, with a shadow."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import cv2
import numpy as np

from weakspot.core.arrays import BoolArray, ByteArray, FloatArray, generator
from weakspot.generate.compose.edits import as_pixels, mixed
from weakspot.generate.compose.prompts import COLOURS, PLAIN

INSIDE = 0.5
MIN_OBJECT_SHARE = 0.01
MAX_SHARE = 0.92
MAX_CONTACT = 0.06
MAX_IN_PLACE = 0.7
NO_OBJECT = "hardly anything was found"
ALL_OBJECT = "nearly the whole image was taken for the object"


@dataclass(frozen=True, kw_only=True, eq=False)
class Cut:
    """An object, cut out.

    Args:
        pixels: the image that it is in [h, w, 3].
        alpha: how much of each pixel is object [h, w], 0 to 1, soft at the outline.
        is_given: whether its mask came with the data instead of from a segmenter.
        sample_id: the sample that it comes from.
    """

    pixels: ByteArray
    alpha: FloatArray
    is_given: bool = False
    sample_id: str = ""

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
        mask = (self.alpha > INSIDE).astype(np.uint8)
        outline = mask_between(cv2.erode(mask, np.ones((3, 3), dtype=np.uint8)), mask)
        edge = np.ones(mask.shape, dtype=np.bool_)
        edge[1:-1, 1:-1] = False
        n_edge = int((outline & edge).sum()) + int((mask[edge] > 0).sum())
        return n_edge <= MAX_CONTACT * max(1, int(outline.sum()))

    @property
    def has_room(self) -> bool:
        """Whether enough is seen behind the object for another backdrop to show, with the object where it is."""
        return float((self.alpha > INSIDE).mean()) <= MAX_IN_PLACE


def cut_by_mask(pixels: ByteArray, mask: ByteArray) -> Cut | str:
    """Return the object under a mask [h, w] where white is the object, or why there is none."""
    height, width = pixels.shape[:2]
    fitted = cv2.resize(mask, (width, height), interpolation=cv2.INTER_AREA)
    is_object = fitted > 127  # noqa: PLR2004
    if not is_object.any():
        return "the mask is empty"
    alpha = cv2.GaussianBlur(is_object.astype(np.float32), (0, 0), 0.8)
    return Cut(pixels=pixels, alpha=alpha, is_given=True)


def cut_by_coverage(pixels: ByteArray, coverage: FloatArray) -> Cut | str:
    """Return the object that a segmenter has found, at any size, or why there is none."""
    height, width = pixels.shape[:2]
    alpha = cv2.resize(
        np.asarray(coverage, dtype=np.float32), (width, height), interpolation=cv2.INTER_LINEAR
    )
    share = float((alpha > INSIDE).mean())
    if share < MIN_OBJECT_SHARE:
        return NO_OBJECT
    if share > MAX_SHARE:
        return ALL_OBJECT
    return Cut(pixels=pixels, alpha=np.clip(alpha, 0.0, 1.0))


def mask_between(inner: ByteArray, outer: ByteArray) -> BoolArray:
    return np.asarray((outer > 0) & (inner == 0))


MIN_CHROMA = 20.0
MAX_TURNED = 60.0
MIN_TONE_SHARE = 0.25


def tone_of(cut: Cut, colour: str) -> FloatArray | None:
    """Return the mean of the parts of an object that may be called by a colour, as CIE Lab [3]; None if hardly any may.

    A mask that is not sure also holds leaves, crates and other objects: parts whose hue is more than sixty degrees from that of a
    painter's colour are left out. White, grey and black have no hue; there the whole object counts.
    """
    lab = cv2.cvtColor(cut.pixels.astype(np.float32) / 255.0, cv2.COLOR_RGB2LAB)
    inside = lab[cut.alpha > INSIDE]
    _, *hue = COLOURS[colour]
    if not len(inside):
        return None
    if float(np.hypot(hue[0], hue[1])) >= MIN_CHROMA:
        apart = np.arctan2(inside[:, 2], inside[:, 1]) - np.arctan2(hue[1], hue[0])
        is_near = np.abs((apart + np.pi) % (2 * np.pi) - np.pi) <= np.radians(MAX_TURNED)
        if is_near.mean() < MIN_TONE_SHARE:
            return None
        inside = inside[is_near]
    return np.asarray(inside.mean(axis=0), dtype=np.float32)


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
MAX_LIGHT = 12.0
MAX_HUE = 6.0
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


Placement = tuple[float, float, float]
"""Where an object goes: x and y of its centre and the length of its longer side, as shares of the side of the new image."""


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
    reach = min(0.5, 0.5 * length + 0.01)
    spots = [
        (x + float(jitter[0]) + across * length, y + float(jitter[1]) + down * length)
        for across, down in SPOTS[n]
    ]
    return [
        (min(max(across, reach), 1 - reach), min(max(down, reach), 1 - reach), length)
        for across, down in spots
    ]


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
    for sprite, place in sorted(zip(sprites, places, strict=True), key=lambda pair: pair[1][1]):
        layer, alpha = _layer(sprite, place, side)
        if is_lit:
            pixels = _shade(pixels, alpha)
            layer = in_light_of(layer, alpha, backdrop)
        pixels = mixed(pixels, layer, alpha)
        cover = np.maximum(cover, alpha)
    return pixels, cover


def _layer(sprite: Sprite, place: Placement, side: int) -> tuple[ByteArray, FloatArray]:
    height, width = sprite.alpha.shape
    x, y, length = place
    factor = length * side / max(height, width)
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
    left, top = round(x * side - size[0] / 2), round(y * side - size[1] / 2)
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
    own = cv2.cvtColor(layer.astype(np.float32) / 255.0, cv2.COLOR_RGB2LAB)
    is_object = alpha > 0.5  # noqa: PLR2004
    if not is_object.any():
        return layer
    behind = cv2.cvtColor(backdrop.astype(np.float32) / 255.0, cv2.COLOR_RGB2LAB).mean(axis=(0, 1))
    lightness = np.clip(
        LIGHT_TAKEN * (behind[0] - own[is_object].mean(axis=0)[0]), -MAX_LIGHT, MAX_LIGHT
    )
    hue = np.clip(HUE_TAKEN * behind[1:], -MAX_HUE, MAX_HUE)
    own = np.clip(
        own + np.array([lightness, *hue], dtype=np.float32), (0, -127, -127), (100, 127, 127)
    ).astype(np.float32)
    return as_pixels(cv2.cvtColor(own, cv2.COLOR_LAB2RGB) * 255.0)


FILLING_SIDE = 96
FILLING_REACH = 3
GROWN = 0.04
PAINT_SHADE = 14.0
TONES_TAKEN = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class Backdrop:
    """An image to put an object on.

    Args:
        pixels: [h, w, 3].
        hole: centre (x, y) of what was removed from it, as shares of width and height; None if nothing was.
    """

    pixels: ByteArray
    hole: tuple[float, float] | None = None


def emptied(cut: Cut) -> Backdrop:
    """Return the image of an object without the object: its place is filled with what is elsewhere in the image."""
    height, width = cut.alpha.shape
    scale = min(1.0, FILLING_SIDE / max(height, width))
    small_size = (max(8, round(width * scale)), max(8, round(height * scale)))
    small = cv2.resize(cut.pixels, small_size, interpolation=cv2.INTER_AREA)
    brush = np.ones((2 * round(GROWN * max(small_size)) + 1,) * 2, dtype=np.uint8)
    hole = cv2.dilate(
        (cv2.resize(cut.alpha, small_size, interpolation=cv2.INTER_AREA) > 0.1).astype(np.uint8),  # noqa: PLR2004
        brush,
    )
    smooth = cv2.inpaint(small, hole, FILLING_REACH, cv2.INPAINT_TELEA)
    large = (
        cv2.resize(smooth, (width, height), interpolation=cv2.INTER_CUBIC) + _grain(cut)[..., None]
    )
    large_hole = cv2.resize(hole, (width, height), interpolation=cv2.INTER_NEAREST) > 0
    step = best_step(small, hole > 0)
    if step is not None:
        large = _from_elsewhere(
            cut.pixels, large, large_hole, (round(step[0] / scale), round(step[1] / scale))
        )
    soft = cv2.GaussianBlur(
        large_hole.astype(np.float32), (0, 0), max(1.0, max(height, width) / 90)
    )
    top, left, bottom, right = cut.box
    centre = (0.5 * (left + right) / width, 0.5 * (top + bottom) / height)
    return Backdrop(pixels=mixed(cut.pixels, large, np.clip(soft * 1.4, 0.0, 1.0)), hole=centre)


def best_step(pixels: ByteArray, hole: BoolArray) -> tuple[int, int] | None:
    """Return by how much (down, across) the image must be moved to fill its hole so that the rim fits best, if it can."""
    height, width = hole.shape
    rim = mask_between(
        hole.astype(np.uint8), cv2.dilate(hole.astype(np.uint8), np.ones((7, 7), dtype=np.uint8))
    )
    rows, columns = np.nonzero(hole)
    values = pixels.astype(np.float32)
    reach = (int(np.ptp(rows)) + 4, int(np.ptp(columns)) + 4)
    stride = max(2, max(height, width) // 32)
    found: tuple[float, tuple[int, int]] | None = None
    for down in range(-height + stride, height, stride):
        for across in range(-width + stride, width, stride):
            if abs(down) < reach[0] and abs(across) < reach[1]:
                continue
            if not _covers(hole, (down, across)):
                continue
            misfit = float(
                np.abs(values - np.roll(values, (down, across), axis=(0, 1)))[rim].mean()
            )
            if found is None or misfit < found[0]:
                found = misfit, (down, across)
    return None if found is None else found[1]


def _covers(hole: BoolArray, step: tuple[int, int]) -> bool:
    rows, columns = np.nonzero(hole)
    rows, columns = rows - step[0], columns - step[1]
    is_inside = (rows >= 0) & (rows < hole.shape[0]) & (columns >= 0) & (columns < hole.shape[1])
    return bool(is_inside.all()) and not hole[rows, columns].any()


def _from_elsewhere(
    pixels: ByteArray, smooth: FloatArray, hole: BoolArray, step: tuple[int, int]
) -> FloatArray:
    """Return another part of the image moved over the hole, half way to the tones that suit the rim."""
    moved = np.roll(pixels, step, axis=(0, 1)).astype(np.float32)
    spread = max(4.0, max(hole.shape) / 16)
    tones = cv2.GaussianBlur(smooth.astype(np.float32), (0, 0), spread) - cv2.GaussianBlur(
        moved, (0, 0), spread
    )
    return np.asarray(
        np.where(hole[..., None], moved + TONES_TAKEN * tones, smooth), dtype=np.float32
    )


def _grain(cut: Cut) -> FloatArray:
    """Return noise as strong as the fine detail around the object, so that what was filled does not look smooth."""
    grey = cut.pixels.astype(np.float32).mean(axis=2)
    detail = (grey - cv2.GaussianBlur(grey, (0, 0), 1.5))[cut.alpha < 0.02]  # noqa: PLR2004
    spread = min(8.0, float(np.median(np.abs(detail))) * 1.5) if len(detail) else 0.0
    return np.asarray(
        spread * generator(0, "grain").standard_normal(cut.alpha.shape), dtype=np.float32
    )


def square_view(backdrop: Backdrop, *, side: int, anchor: tuple[float, float]) -> ByteArray:
    """Return the largest square of a backdrop; what was removed from it comes as near as possible to the anchor (shares x, y)."""
    height, width = backdrop.pixels.shape[:2]
    length = min(height, width)
    hole = backdrop.hole or (0.5, 0.5)
    left = round(min(max(hole[0] * width - anchor[0] * length, 0), width - length))
    top = round(min(max(hole[1] * height - anchor[1] * length, 0), height - length))
    return resized(
        backdrop.pixels[top : top + length, left : left + length], side, side, cv2.INTER_CUBIC
    )


def own_view(cut: Cut, pixels: ByteArray, *, side: int) -> tuple[ByteArray, FloatArray]:
    """Return the largest square around the object of an image of the cut's size, and the object's alpha in it."""
    height, width = cut.alpha.shape
    length = min(height, width)
    box = cut.box
    top = round(min(max(0.5 * (box[0] + box[2] - length), 0), height - length))
    left = round(min(max(0.5 * (box[1] + box[3] - length), 0), width - length))
    window = slice(top, top + length), slice(left, left + length)
    alpha = cv2.resize(
        cut.alpha[window],
        (side, side),
        interpolation=cv2.INTER_AREA if side < length else cv2.INTER_LINEAR,
    )
    return resized(pixels[window], side, side, cv2.INTER_CUBIC), np.asarray(alpha, dtype=np.float32)


def painted(colour: str, *, side: int) -> ByteArray:
    """Return a plain backdrop in a colour, a little lighter above than below; `plain` is light grey."""
    lightness, *hue = COLOURS.get(colour, PLAIN)
    lab = np.empty((side, side, 3), dtype=np.float32)
    lab[..., 0] = np.clip(
        lightness + np.linspace(0.5, -0.5, side, dtype=np.float32) * PAINT_SHADE, 2, 98
    )[:, None]
    lab[..., 1:] = hue
    return as_pixels(cv2.cvtColor(lab, cv2.COLOR_LAB2RGB) * 255.0)


def resized(pixels: ByteArray, width: int, height: int, enlarging: int) -> ByteArray:
    is_smaller = width * height < pixels.shape[0] * pixels.shape[1]
    return np.asarray(
        cv2.resize(
            pixels, (width, height), interpolation=cv2.INTER_AREA if is_smaller else enlarging
        ),
        dtype=np.uint8,
    )
