"""Images that teach words for backgrounds, surfaces, numbers, weather and what is hidden: the same cut-out shown in other ways.

Captions seldom say what lies behind a thing, how its surface looks or that a part of it is cut off.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
from attribute_images import COLOURS, SIDE, place, plain_background, random_view
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageOps

HALF = 0.5
CHANNELS = 3
Values = npt.NDArray[np.float64]
Ground = Callable[[np.random.Generator], Image.Image]
Surface = Callable[[Image.Image, np.random.Generator], Image.Image]

BACKGROUND_COLOURS = ("white", "black", "green", "blue", "brown", "red")
SURFACE_COLOURS: Mapping[str, tuple[int, int, int]] = MappingProxyType(
    {"silver": (176, 180, 186), "golden": (212, 168, 48), "beige": (222, 206, 170)}
)


def _grid() -> tuple[Values, Values]:
    down, across = np.mgrid[0:SIDE, 0:SIDE].astype(np.float64)
    return down, across


def _two_colours(generator: np.random.Generator) -> tuple[Values, Values]:
    names = list(COLOURS)
    first, second = generator.choice(len(names), 2, replace=False)
    return np.array(COLOURS[names[first]], float), np.array(COLOURS[names[second]], float)


def _mixed(share: Values, generator: np.random.Generator) -> Image.Image:
    first, second = _two_colours(generator)
    values = first * share[..., None] + second * (1 - share[..., None])
    grain = generator.normal(0, 4, (SIDE, SIDE, 1))
    return Image.fromarray(np.clip(values + grain, 0, 255).astype(np.uint8))


def _turned(generator: np.random.Generator) -> tuple[Values, Values]:
    down, across = _grid()
    angle = generator.uniform(0, np.pi)
    along = across * np.cos(angle) + down * np.sin(angle)
    return along, down * np.cos(angle) - across * np.sin(angle)


def pattern(kind: str, generator: np.random.Generator) -> Values:
    """Return a pattern [side, side] of zeros and ones: `striped`, `checked`, `dotted` or `wavy`."""
    along, beside = _turned(generator)
    width = generator.uniform(12, 30)
    if kind == "striped":
        inside = (along // width) % 2 < 1
    elif kind == "checked":
        inside = ((along // width) + (beside // width)) % 2 < 1
    elif kind == "dotted":
        near = np.hypot(along % width - width / 2, beside % width - width / 2)
        inside = near < width * generator.uniform(0.22, 0.38)
    else:
        bent = along + width * HALF * np.sin(beside / generator.uniform(7, 14))
        inside = (bent // width) % 2 < 1
    return inside.astype(np.float64)


PATTERNS = ("striped", "checked", "dotted", "wavy")


def _gradient(generator: np.random.Generator) -> Image.Image:
    along, _ = _turned(generator)
    low, high = along.min(), along.max()
    return _mixed((along - low) / (high - low), generator)


def _bricks(generator: np.random.Generator) -> Image.Image:
    height, width = generator.uniform(16, 26), generator.uniform(38, 60)
    made = Image.new("RGB", (SIDE, SIDE), (190, 184, 176))
    draw = ImageDraw.Draw(made)
    base = np.array([158, 74, 54]) + generator.normal(0, 14, CHANNELS)
    for row in range(int(SIDE // height) + 2):
        for column in range(-1, int(SIDE // width) + 2):
            left, top = (column + HALF * (row % 2)) * width, row * height
            colour = np.clip(base + generator.normal(0, 12, CHANNELS), 0, 255).astype(int)
            draw.rectangle((left, top, left + width - 3, top + height - 3), fill=tuple(colour))
    return _grainy(made, generator)


def _boards(generator: np.random.Generator) -> Image.Image:
    down, across = _grid()
    wide = generator.uniform(40, 75)
    board = across // wide
    rings = np.sin((across + 9 * np.sin(down / 37 + board)) / generator.uniform(2.5, 5) + board * 5)
    shade = 1 + 0.10 * rings + 0.06 * np.cos(board * 7)
    base = np.array([156, 108, 66]) + generator.normal(0, 16, CHANNELS)
    values = base * shade[..., None] * np.where(across % wide < 2, 0.4, 1)[..., None]
    made = Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))
    made = made.rotate(90) if generator.random() < HALF else made
    return _grainy(made, generator)


def _grass(generator: np.random.Generator) -> Image.Image:
    made = Image.new("RGB", (SIDE, SIDE), (48, 92, 34))
    draw = ImageDraw.Draw(made)
    for _ in range(2600):
        x, y = generator.uniform(-5, SIDE + 5, 2)
        lean, tall = generator.normal(0, 5), generator.uniform(8, 22)
        green = int(generator.uniform(90, 190))
        colour = (int(green * generator.uniform(0.4, 0.75)), green, int(green * 0.3))
        draw.line((x, y, x + lean, y - tall), fill=colour, width=1)
    return _grainy(made, generator)


def _grainy(image: Image.Image, generator: np.random.Generator) -> Image.Image:
    values = np.asarray(image, dtype=np.float64) + generator.normal(0, 5, (SIDE, SIDE, 1))
    soft = Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))
    return soft.filter(ImageFilter.GaussianBlur(0.6))


def _coloured(colour: str) -> Ground:
    return lambda generator: plain_background(generator, colour)


def _patterned(kind: str) -> Ground:
    return lambda generator: _mixed(pattern(kind, generator), generator)


GROUNDS: Mapping[str, Ground] = MappingProxyType(
    {
        **{colour: _coloured(colour) for colour in BACKGROUND_COLOURS},
        **{kind: _patterned(kind) for kind in PATTERNS},
        "gradient": _gradient,
        "brick": _bricks,
        "wooden": _boards,
        "grassy": _grass,
    }
)


def clutter(
    cutouts: list[Image.Image], ground: Image.Image, generator: np.random.Generator
) -> Image.Image:
    """Fill a background with many other things."""
    scene = ground
    for _ in range(14):
        chosen = cutouts[generator.integers(len(cutouts))]
        scene = place(chosen, scene, generator, scale=(0.2, 0.4))
    return scene


def paint(cutout: Image.Image, colour: tuple[int, int, int], *, gloss: float) -> Image.Image:
    """Paint a cut-out and keep its light and shade, with stronger lights the more it gleams."""
    rgba = np.asarray(cutout.convert("RGBA"), dtype=np.float64)
    light = rgba[..., :CHANNELS] @ np.array([0.299, 0.587, 0.114]) / 255
    inside = rgba[..., 3] > HALF * 255
    middle = float(np.median(light[inside])) if inside.any() else HALF
    shade = np.clip(0.85 + (0.8 + gloss) * (light - middle), 0.2, 1.5)[..., None]
    lights = np.clip(shade - 1, 0, 1) * (140 + 160 * gloss)
    values = np.clip(np.array(colour) * shade + lights, 0, 255)
    return Image.fromarray(np.dstack([values, rgba[..., 3]]).round().astype(np.uint8))


def _metallic(name: str, gloss: float) -> Surface:
    def made(cutout: Image.Image, generator: np.random.Generator) -> Image.Image:
        jitter = np.array(SURFACE_COLOURS[name]) + generator.normal(0, 7, CHANNELS)
        red, green, blue = (int(one) for one in np.clip(jitter, 0, 255))
        return paint(cutout, (red, green, blue), gloss=gloss)

    return made


def _covered(kind: str) -> Surface:
    def made(cutout: Image.Image, generator: np.random.Generator) -> Image.Image:
        first, second = _two_colours(generator)
        one, other = (
            paint(cutout, (int(c[0]), int(c[1]), int(c[2])), gloss=0.0) for c in (first, second)
        )
        share = Image.fromarray((pattern(kind, generator) * 255).astype(np.uint8))
        return Image.composite(one, other, share.resize(cutout.size, Image.Resampling.NEAREST))

    return made


SURFACES: Mapping[str, Surface] = MappingProxyType(
    {
        "silver": _metallic("silver", 1.2),
        "golden": _metallic("golden", 0.8),
        "beige": _metallic("beige", 0.0),
        "striped": _covered("striped"),
        "checked": _covered("checked"),
        "spotted": _covered("dotted"),
    }
)


def several(cutout: Image.Image, ground: Image.Image, count: int) -> Image.Image:
    """Show a thing so many times, side by side."""
    scene = ImageOps.fit(ground.convert("RGB"), (SIDE, SIDE))
    columns = int(np.ceil(np.sqrt(count)))
    cell = SIDE // columns
    small = ImageOps.contain(_trimmed(cutout), (cell - 6, cell - 6))
    for number in range(count):
        corner = (number % columns) * cell + 3, (number // columns) * cell + 3
        scene.paste(small, corner, small)
    return scene


def heap(cutout: Image.Image, ground: Image.Image, generator: np.random.Generator) -> Image.Image:
    """Show a thing many times, one lying on the other."""
    scene = ImageOps.fit(ground.convert("RGB"), (SIDE, SIDE))
    small = ImageOps.contain(_trimmed(cutout), (84, 84))
    for down in range(70, SIDE, 22):
        for across in range(-20, SIDE, 40):
            turned = small.rotate(float(generator.uniform(-35, 35)), expand=True)
            jitter = generator.integers(-14, 15, 2)
            scene.paste(turned, (across + int(jitter[0]), down + int(jitter[1]) - 20), turned)
    return scene


def cut_off(
    cutout: Image.Image, ground: Image.Image, generator: np.random.Generator
) -> Image.Image:
    """Show a thing half outside the image."""
    scene = ImageOps.fit(ground.convert("RGB"), (SIDE, SIDE))
    large = ImageOps.contain(_trimmed(cutout), (190, 190))
    side = generator.random() < HALF
    at = -large.width // 2 if generator.random() < HALF else SIDE - large.width // 2
    corner = (at, (SIDE - large.height) // 2) if side else ((SIDE - large.width) // 2, at)
    scene.paste(large, corner, large)
    return scene


def hide(shown: Image.Image, cover: Image.Image, generator: np.random.Generator) -> Image.Image:
    """Lay another thing over the middle of an image."""
    front = ImageOps.contain(_trimmed(cover), (150, 150))
    scene = shown.copy()
    jitter = generator.integers(-18, 19, 2)
    corner = (SIDE - front.width) // 2 + int(jitter[0]), (SIDE - front.height) // 2 + int(jitter[1])
    scene.paste(front, corner, front)
    return scene


def rain(image: Image.Image, generator: np.random.Generator) -> Image.Image:
    """Let it rain: grey light and slanting streaks."""
    dull = ImageEnhance.Color(ImageEnhance.Brightness(image).enhance(0.62)).enhance(0.5)
    layer = Image.new("L", image.size, 0)
    draw = ImageDraw.Draw(layer)
    lean = generator.uniform(-0.35, 0.35)
    for _ in range(260):
        x, y = generator.uniform(0, SIDE, 2)
        tall = generator.uniform(12, 34)
        draw.line((x, y, x + lean * tall, y + tall), fill=int(generator.uniform(90, 200)), width=1)
    streaks = layer.filter(ImageFilter.GaussianBlur(0.5))
    white = Image.new("RGB", image.size, (225, 230, 235))
    return Image.composite(white, dull, streaks)


def overexpose(image: Image.Image, generator: np.random.Generator) -> Image.Image:
    """Burn the lights out."""
    values = np.asarray(image, dtype=np.float64) * generator.uniform(2.2, 3.2) + 25
    return Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))


def blurred_ground(photograph: Image.Image, generator: np.random.Generator) -> Image.Image:
    """Return a part of a photograph out of focus."""
    view = random_view(photograph, generator)
    return view.filter(ImageFilter.GaussianBlur(generator.uniform(5, 9)))


def _trimmed(cutout: Image.Image) -> Image.Image:
    return cutout.crop(cutout.getchannel("A").getbbox() or (0, 0, *cutout.size))
