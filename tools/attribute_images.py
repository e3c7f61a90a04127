"""Images that teach words which captions seldom use: colours, light, style.

People rarely write that an image is blurry or that the car in it is grey, so
a text side learnt from captions alone is weak at such words. These functions
make the missing images from cut-outs and photographs: the same object in
every colour, the same photograph under every filter.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

SIDE = 224
HALF = 0.5

Pixels = npt.NDArray[np.uint8]

COLOURS: Mapping[str, tuple[int, int, int]] = MappingProxyType(
    {
        "red": (214, 32, 34),
        "orange": (245, 132, 20),
        "yellow": (248, 216, 32),
        "green": (44, 150, 56),
        "blue": (32, 84, 200),
        "purple": (124, 48, 164),
        "pink": (246, 140, 184),
        "brown": (122, 74, 38),
        "black": (26, 26, 28),
        "white": (246, 246, 244),
        "grey": (134, 136, 138),
    }
)


def recolour(cutout: Image.Image, colour: str, generator: np.random.Generator) -> Image.Image:
    """Paint a cut-out in one colour and keep its light and shade.

    Args:
        cutout: An RGBA image whose alpha channel is the object's outline.
        colour: A name in `COLOURS`.
        generator: Source of the small change of hue that every call makes.

    Returns:
        A new RGBA image of the same size.
    """
    rgba = np.asarray(cutout.convert("RGBA"), dtype=np.float64)
    light = rgba[..., :3] @ np.array([0.299, 0.587, 0.114]) / 255.0
    inside = rgba[..., 3] > HALF * 255
    middle = float(np.median(light[inside])) if inside.any() else 0.5
    shade = np.clip(0.85 + 0.8 * (light - middle), 0.25, 1.35)[..., None]
    base = np.array(COLOURS[colour]) + generator.normal(0.0, 8.0, 3)
    highlight = np.clip(shade - 1.0, 0.0, 1.0) * 140.0
    painted = np.clip(base * shade + highlight, 0.0, 255.0)
    return Image.fromarray(np.dstack([painted, rgba[..., 3]]).round().astype(np.uint8))


def place(
    cutout: Image.Image,
    background: Image.Image,
    generator: np.random.Generator,
    *,
    scale: tuple[float, float] = (0.45, 0.9),
) -> Image.Image:
    """Put a cut-out on a background at a random place and size.

    Args:
        cutout: An RGBA image.
        background: Any image; it is cropped to a square of `SIDE` pixels.
        generator: Source of the place and the size.
        scale: Smallest and largest longer side, as a share of `SIDE`.

    Returns:
        An RGB image of `SIDE` by `SIDE` pixels.
    """
    scene = ImageOps.fit(background.convert("RGB"), (SIDE, SIDE), Image.Resampling.BICUBIC)
    box = cutout.getchannel("A").getbbox() or (0, 0, *cutout.size)
    trimmed = cutout.crop(box)
    longer = generator.uniform(*scale) * SIDE
    factor = longer / max(trimmed.size)
    size = (max(1, round(trimmed.width * factor)), max(1, round(trimmed.height * factor)))
    small = trimmed.resize(size, Image.Resampling.BICUBIC)
    left = int(generator.integers(0, max(1, SIDE - size[0] + 1)))
    top = int(generator.integers(0, max(1, SIDE - size[1] + 1)))
    scene.paste(small, (left, top), small)
    return scene


def plain_background(generator: np.random.Generator, colour: str | None = None) -> Image.Image:
    """Make a softly shaded background, grey or white unless a colour is given."""
    if colour is None:
        base = np.full(3, generator.uniform(90, 250)) + generator.normal(0, 6, 3)
    else:
        base = np.array(COLOURS[colour], dtype=np.float64)
    slope = generator.normal(0, 25, 2)
    down, across = np.mgrid[-0.5 : 0.5 : SIDE * 1j, -0.5 : 0.5 : SIDE * 1j]
    ramp = (slope[0] * down + slope[1] * across)[..., None]
    grain = generator.normal(0, 3, (SIDE, SIDE, 1))
    return Image.fromarray(np.clip(base + ramp + grain, 0, 255).astype(np.uint8))


def random_view(photograph: Image.Image, generator: np.random.Generator) -> Image.Image:
    """Cut a random square out of a photograph and scale it to `SIDE` pixels."""
    shorter = min(photograph.size)
    side = int(shorter * generator.uniform(0.6, 1.0))
    left = int(generator.integers(0, photograph.width - side + 1))
    top = int(generator.integers(0, photograph.height - side + 1))
    view = photograph.convert("RGB").crop((left, top, left + side, top + side))
    view = view.resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    return ImageOps.mirror(view) if generator.random() < HALF else view


def _from_float(values: npt.NDArray[np.float64]) -> Image.Image:
    return Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))


def _dark(image: Image.Image, generator: np.random.Generator) -> Image.Image:
    return ImageEnhance.Brightness(image).enhance(generator.uniform(0.12, 0.32))


def _bright(image: Image.Image, generator: np.random.Generator) -> Image.Image:
    values = np.asarray(image, dtype=np.float64)
    return _from_float(255 - (255 - values) * generator.uniform(0.2, 0.45))


def _blurry(image: Image.Image, generator: np.random.Generator) -> Image.Image:
    return image.filter(ImageFilter.GaussianBlur(generator.uniform(4.0, 9.0)))


def _grey(image: Image.Image, generator: np.random.Generator) -> Image.Image:
    grey = ImageOps.grayscale(image)
    return ImageEnhance.Contrast(grey).enhance(generator.uniform(0.9, 1.3)).convert("RGB")


def _sepia(image: Image.Image, generator: np.random.Generator) -> Image.Image:
    light = np.asarray(ImageOps.grayscale(image), dtype=np.float64)[..., None] / 255
    tone = np.array([255, 225, 175]) * generator.uniform(0.85, 1.0)
    return _from_float(light * tone)


def _sketch(image: Image.Image, generator: np.random.Generator) -> Image.Image:
    light = np.asarray(ImageOps.grayscale(image), dtype=np.float64)
    inverted = Image.fromarray((255 - light).astype(np.uint8)).filter(
        ImageFilter.GaussianBlur(generator.uniform(3.0, 7.0))
    )
    dodge = light * 255 / np.maximum(255 - np.asarray(inverted, dtype=np.float64), 1)
    return _from_float(np.repeat(np.minimum(dodge, 255)[..., None], 3, axis=2))


def _painting(image: Image.Image, generator: np.random.Generator) -> Image.Image:
    size = int(generator.choice([5, 7, 9]))
    smooth = image.filter(ImageFilter.ModeFilter(size))
    return ImageEnhance.Color(ImageOps.posterize(smooth, 4)).enhance(1.5)


def _noisy(image: Image.Image, generator: np.random.Generator) -> Image.Image:
    values = np.asarray(image, dtype=np.float64)
    return _from_float(values + generator.normal(0, generator.uniform(35, 60), values.shape))


def _pixelate(image: Image.Image, generator: np.random.Generator) -> Image.Image:
    side = int(generator.integers(16, 33))
    small = image.resize((side, side), Image.Resampling.BOX)
    return small.resize(image.size, Image.Resampling.NEAREST)


def _foggy(image: Image.Image, generator: np.random.Generator) -> Image.Image:
    share = generator.uniform(0.2, 0.4)
    return _from_float(np.asarray(image, dtype=np.float64) * share + 205 * (1 - share))


def _night(image: Image.Image, generator: np.random.Generator) -> Image.Image:
    tint = np.array([0.16, 0.2, 0.38]) * generator.uniform(0.8, 1.2)
    return _from_float(np.asarray(image, dtype=np.float64) * tint)


def _upside_down(image: Image.Image, generator: np.random.Generator) -> Image.Image:
    turned = image.transpose(Image.Transpose.ROTATE_180)
    return ImageOps.mirror(turned) if generator.random() < HALF else turned


def _clear(image: Image.Image, generator: np.random.Generator) -> Image.Image:
    return ImageEnhance.Sharpness(image).enhance(generator.uniform(1.0, 1.6))


Filter = Callable[[Image.Image, np.random.Generator], Image.Image]

FILTERS: Mapping[str, Filter] = MappingProxyType(
    {
        "dark": _dark,
        "bright": _bright,
        "blurry": _blurry,
        "black and white": _grey,
        "sepia": _sepia,
        "sketch": _sketch,
        "painting": _painting,
        "noisy": _noisy,
        "pixelated": _pixelate,
        "foggy": _foggy,
        "night": _night,
        "upside down": _upside_down,
        "clear": _clear,
    }
)
