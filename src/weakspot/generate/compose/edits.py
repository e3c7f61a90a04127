"""Changes of an image by name, and other views of it; what is random comes from the generator that is given."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import cv2
import numpy as np

from weakspot.core.arrays import AnyArray, ByteArray, FloatArray
from weakspot.generate.compose.prompts import COLOURS, OWN_COLOUR, Change

Edit = Callable[[ByteArray, np.random.Generator], ByteArray]

NEW_LIGHTNESS = 0.8
OWN_HUES = 0.85
HIGHLIGHT = 88.0
DARK = 0.34
NIGHT_TINT = np.array([0.94, 0.98, 1.08])
OCCLUDED = (0.3, 0.45)
FOG = np.array([222.0, 226.0, 230.0])
RAIN_LIGHT = 0.82
MOSAIC = 28
TILT = (18.0, 32.0)
TEXT_WIDTH = (0.55, 0.9)
WRITING = ("SAMPLE", "COPYRIGHT", "SPECIAL OFFER", "PHOTO 1024", "www.example.com", "NEW TODAY")
NOISE = 22.0


def recoloured(
    pixels: ByteArray, alpha: FloatArray, colour: str, *, tone: FloatArray | None = None
) -> ByteArray:
    """Return the image with the object in another colour; shading, highlights and a part of its own hues stay.

    In its own colour it is painted alike with the mean of its own, which is the control for all other colours.

    Args:
        pixels: [h, w, 3].
        alpha: how much of each pixel is object [h, w].
        colour: its name.
        tone: how the colour looks on such objects, as CIE Lab [3]; None: as a table has it.
    """
    lab = cv2.cvtColor(pixels.astype(np.float32) / 255.0, cv2.COLOR_RGB2LAB)
    weight = np.maximum(alpha, 1e-6)[..., None]
    mean = (lab * weight).sum(axis=(0, 1)) / weight.sum()
    wanted = mean if colour == OWN_COLOUR else COLOURS[colour] if tone is None else tone
    light, green_red, blue_yellow = (float(one) for one in wanted)
    new = lab.copy()
    middle = mean[0] + NEW_LIGHTNESS * (light - mean[0])
    new[..., 0] = middle + (lab[..., 0] - mean[0]) * _room(
        lab[..., 0][alpha > 0.5],  # noqa: PLR2004
        float(mean[0]),
        float(middle),
    )
    chroma = np.clip((100.0 - new[..., 0]) / (100.0 - HIGHLIGHT), 0.1, 1.0) * np.clip(
        new[..., 0] / 16.0, 0.1, 1.0
    )
    for axis, hue in ((1, green_red), (2, blue_yellow)):
        new[..., axis] = hue * chroma + OWN_HUES * (lab[..., axis] - mean[axis] * chroma)
    painted = (
        cv2.cvtColor(
            np.clip(new, (0, -127, -127), (100, 127, 127)).astype(np.float32), cv2.COLOR_LAB2RGB
        )
        * 255.0
    )
    return mixed(pixels, painted, alpha)


def _room(lightness: FloatArray, mean: float, middle: float) -> float:
    if not len(lightness):
        return 1.0
    low, high = np.percentile(lightness, (3, 97))
    return float(
        min(1.0, (middle - 2.0) / max(1.0, mean - low), (99.0 - middle) / max(1.0, high - mean))
    )


def mixed(below: AnyArray, above: AnyArray, alpha: FloatArray) -> ByteArray:
    """Return one image over another, seen as far as alpha [h, w] says."""
    weight = alpha[..., None]
    return as_pixels(below.astype(np.float32) * (1.0 - weight) + above.astype(np.float32) * weight)


def as_pixels(values: AnyArray) -> ByteArray:
    """Return values as bytes, those off the scale at its ends."""
    return np.asarray(np.clip(np.round(values), 0, 255), dtype=np.uint8)


def blurred(pixels: ByteArray, *, strength: float = 1.0) -> ByteArray:
    return np.asarray(
        cv2.GaussianBlur(pixels, (0, 0), strength * max(1.5, max(pixels.shape[:2]) / 72)),
        dtype=np.uint8,
    )


def partly_hidden(pixels: ByteArray, alpha: FloatArray, random: np.random.Generator) -> ByteArray:
    """Return the image with a slab in front of a third to a half of the object, in the tone of the surroundings."""
    height, width = alpha.shape
    rows, columns = np.nonzero(alpha > 0.5)  # noqa: PLR2004
    if not len(rows):
        return pixels
    turn = random.uniform(0.0, 2.0 * np.pi)
    along = columns * np.cos(turn) + rows * np.sin(turn)
    edge = np.quantile(along, 1.0 - random.uniform(*OCCLUDED))
    across, down = np.meshgrid(np.arange(width), np.arange(height))
    depth = across * np.cos(turn) + down * np.sin(turn) - edge
    beside = -across * np.sin(turn) + down * np.cos(turn)
    middle, reach = (
        np.median(-columns * np.sin(turn) + rows * np.cos(turn)),
        0.62 * np.sqrt(len(rows)),
    )
    slab = ((depth > 0) & (depth < 1.1 * reach) & (np.abs(beside - middle) < reach)).astype(
        np.float32
    )
    shadow = cv2.GaussianBlur(slab, (0, 0), max(2.0, width / 60))
    shaded = pixels * (1.0 - 0.45 * shadow[..., None])
    return mixed(shaded, _slab_texture(pixels, alpha, random), cv2.GaussianBlur(slab, (0, 0), 0.7))


def _slab_texture(pixels: ByteArray, alpha: FloatArray, random: np.random.Generator) -> FloatArray:
    outside = pixels[alpha < 0.05]  # noqa: PLR2004
    tone = outside.mean(axis=0) if len(outside) else pixels.mean(axis=(0, 1))
    grain = cv2.GaussianBlur(
        random.standard_normal(pixels.shape[:2]).astype(np.float32), (0, 0), sigmaX=9.0, sigmaY=0.8
    )
    shade = 0.55 if tone.mean() > 110 else 1.6  # noqa: PLR2004
    return np.asarray(np.clip(tone * shade, 24, 214) + 90.0 * grain[..., None], dtype=np.float32)


def darkened(pixels: ByteArray, _random: np.random.Generator) -> ByteArray:
    """Return the image with a third of its light, and a little bluer."""
    return as_pixels(pixels * (DARK * NIGHT_TINT))


def brightened(pixels: ByteArray, _random: np.random.Generator) -> ByteArray:
    """Return the image in hard light: brighter, the brightest parts washed out."""
    return as_pixels(255.0 - (255.0 - np.minimum(pixels * 1.15, 255.0)) * 0.62)


def foggy(pixels: ByteArray, random: np.random.Generator) -> ByteArray:
    """Return the image behind fog in swathes."""
    height, width = pixels.shape[:2]
    coarse = random.random((5, 5)).astype(np.float32)
    swathes = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    density = np.clip(0.48 + 0.3 * swathes, 0.0, 0.82)
    return mixed(
        cv2.GaussianBlur(pixels, (0, 0), 0.8),
        np.broadcast_to(FOG, pixels.shape),
        density.astype(np.float32),
    )


def rainy(pixels: ByteArray, random: np.random.Generator) -> ByteArray:
    """Return the image duller and greyer, with streaks of rain before it."""
    side = min(pixels.shape[:2])
    drops = _drops(pixels.shape[:2], random, density=0.006)
    length = max(5, side // 16)
    streak = np.zeros((length, length), dtype=np.float32)
    cv2.line(streak, (int(length * 0.65), 0), (int(length * 0.35), length - 1), 1.0, 1)
    streaks = cv2.GaussianBlur(cv2.filter2D(drops, -1, streak), (0, 0), 0.6)
    grey = pixels.mean(axis=2, keepdims=True)
    dull = (0.7 * pixels + 0.3 * grey) * RAIN_LIGHT
    return mixed(
        dull, np.full(pixels.shape, 225.0), np.clip(0.55 * streaks, 0.0, 0.6).astype(np.float32)
    )


def snowing(pixels: ByteArray, random: np.random.Generator) -> ByteArray:
    """Return the image with flakes of several sizes before it, and paler."""
    side = min(pixels.shape[:2])
    cover = np.zeros(pixels.shape[:2], dtype=np.float32)
    for radius, density in ((side / 220, 0.006), (side / 120, 0.002), (side / 70, 0.0006)):
        flakes = cv2.dilate(_drops(pixels.shape[:2], random, density=density), _disc(radius))
        cover = np.maximum(cover, cv2.GaussianBlur(flakes, (0, 0), max(0.6, radius / 2)))
    pale = pixels * 0.82 + np.array([42.0, 44.0, 48.0])
    return mixed(pale, np.full(pixels.shape, 252.0), np.clip(cover, 0.0, 0.95))


def _drops(shape: tuple[int, ...], random: np.random.Generator, *, density: float) -> FloatArray:
    return np.asarray(random.random(shape[:2]) < density, dtype=np.float32)


def _disc(radius: float) -> ByteArray:
    size = 2 * max(1, round(radius)) + 1
    return np.asarray(cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size)), dtype=np.uint8)


def greyscale(pixels: ByteArray, _random: np.random.Generator) -> ByteArray:
    grey = pixels @ np.array([0.299, 0.587, 0.114])
    return as_pixels(np.repeat(grey[..., None], 3, axis=2))


def noisy(pixels: ByteArray, random: np.random.Generator) -> ByteArray:
    """Return the image with the grain of a bad sensor."""
    return as_pixels(pixels + NOISE * random.standard_normal(pixels.shape))


def pixelated(pixels: ByteArray, _random: np.random.Generator) -> ByteArray:
    height, width = pixels.shape[:2]
    coarse = cv2.resize(pixels, (MOSAIC, MOSAIC), interpolation=cv2.INTER_AREA)
    return np.asarray(
        cv2.resize(coarse, (width, height), interpolation=cv2.INTER_NEAREST), dtype=np.uint8
    )


def tilted(pixels: ByteArray, random: np.random.Generator) -> ByteArray:
    """Return the image turned by a fifth of a right angle or more, so much nearer that no corner is empty."""
    height, width = pixels.shape[:2]
    turn = random.uniform(*TILT) * (1 if random.integers(2) else -1)
    nearer = float(np.cos(np.radians(abs(turn))) + np.sin(np.radians(abs(turn))))
    middle = (0.5 * (width - 1), 0.5 * (height - 1))
    matrix = cv2.getRotationMatrix2D(middle, turn, nearer)
    return np.asarray(
        cv2.warpAffine(pixels, matrix, (width, height), borderMode=cv2.BORDER_REFLECT_101),
        dtype=np.uint8,
    )


def written_over(pixels: ByteArray, random: np.random.Generator) -> ByteArray:
    """Return the image with a line of writing across it, light with a dark rim, as captions and watermarks are."""
    height, width = pixels.shape[:2]
    words = WRITING[int(random.integers(len(WRITING)))]
    font, thick = cv2.FONT_HERSHEY_DUPLEX, max(1, round(width / 130))
    (length, tall), _ = cv2.getTextSize(words, font, 1.0, thick)
    scale = random.uniform(*TEXT_WIDTH) * width / length
    place = (
        round(random.uniform(0.02, 0.98 - scale * length / width) * width),
        round(random.uniform(0.2, 0.95) * (height - scale * tall) + scale * tall),
    )
    drawn = np.array(pixels, dtype=np.uint8)
    for colour, extra in (((20, 20, 20), 2 * thick), ((240, 240, 240), 0)):
        cv2.putText(drawn, words, place, font, scale, colour, thick + extra, cv2.LINE_AA)
    return np.asarray(drawn, dtype=np.uint8)


WHOLE_IMAGE: Mapping[tuple[Change, str], Edit] = MappingProxyType(
    {
        ("pose", "mirrored"): lambda pixels, _random: np.ascontiguousarray(pixels[:, ::-1]),
        ("pose", "upside down"): lambda pixels, _random: np.ascontiguousarray(pixels[::-1, ::-1]),
        ("pose", "tilted"): tilted,
        ("weather", "fog"): foggy,
        ("weather", "rain"): rainy,
        ("weather", "snow"): snowing,
        ("light", "normal"): lambda pixels, _random: pixels,
        ("light", "dark"): darkened,
        ("light", "bright"): brightened,
        ("blur", "all"): lambda pixels, _random: blurred(pixels),
        ("look", "grey"): greyscale,
        ("look", "noisy"): noisy,
        ("look", "pixelated"): pixelated,
        ("text", "over"): written_over,
    }
)
"""Changes of the whole image by kind and value, in the order in which they are made."""


VIEWS = 2**32
"""Seeds below this show an object as its own image shows it; every multiple of this that is added is another view."""

CROP = (0.62, 0.9)
MAX_TURNED = 10.0
LIGHT = (0.82, 1.2)
TINT = 0.05


def another_view(
    pixels: ByteArray, alpha: FloatArray, random: np.random.Generator
) -> tuple[ByteArray, FloatArray]:
    """Return a square image as if taken from a little nearer and beside, and the object's alpha [side, side] in it."""
    side = alpha.shape[0]
    crop, turn = random.uniform(*CROP), random.uniform(-MAX_TURNED, MAX_TURNED)
    away = 0.5 * (1.0 - crop) * side
    shift = random.uniform(-away, away, size=2)
    middle = 0.5 * (side - 1)
    turned = cv2.getRotationMatrix2D((middle + shift[0], middle + shift[1]), turn, 1.0 / crop)
    turned[:, 2] -= shift
    if random.integers(2):
        turned[0] *= -1.0
        turned[0, 2] += side - 1
    seen, covered = (
        cv2.warpAffine(
            one, turned, (side, side), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT_101
        )
        for one in (pixels, alpha)
    )
    return np.asarray(seen, dtype=np.uint8), np.clip(covered, 0.0, 1.0).astype(np.float32)


def another_light(pixels: ByteArray, random: np.random.Generator) -> ByteArray:
    """Return the image a little brighter or darker, warmer or colder."""
    warmth = random.uniform(-TINT, TINT)
    gain = random.uniform(*LIGHT) * np.array([1.0 + warmth, 1.0, 1.0 - warmth])
    return as_pixels(pixels * gain)
