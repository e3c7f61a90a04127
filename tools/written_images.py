"""Images that teach words for text in an image: a word, a label, a watermark or a date put on a photograph.

Captions hardly ever say that there is writing in an image, so these words are taught by the same photograph with and without it.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
from PIL import Image, ImageDraw, ImageFont

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont
HALF, MOSTLY = 0.5, 0.7
CHANNELS = 3
DARKEST, LIGHTEST = 60, 200


def write_word(
    image: Image.Image, words: Sequence[str], fonts: Sequence[Path], rng: np.random.Generator
) -> Image.Image:
    """Write one to three words in a strong colour."""
    made = image.convert("RGB")
    font = _font(fonts, made.width * rng.uniform(0.09, 0.22), rng)
    n_words = int(rng.integers(1, 4))
    text = "\n".join(str(word) for word in rng.choice(words, n_words))
    width, height = _size(text, font)
    corner = _corner(made, width, height, rng)
    draw = ImageDraw.Draw(made)
    draw.multiline_text(corner, text, font=font, fill=_strong_colour(rng))
    return made


def stick_label(
    image: Image.Image, words: Sequence[str], fonts: Sequence[Path], rng: np.random.Generator
) -> Image.Image:
    """Stick a light or coloured label with a word on it on the image."""
    made = image.convert("RGB")
    font = _font(fonts, made.width * rng.uniform(0.06, 0.13), rng)
    text = str(rng.choice(words))
    width, height = _size(text, font)
    edge = max(3, height // 3)
    is_light = rng.random() < MOSTLY
    ground = tuple(int(one) for one in rng.integers(LIGHTEST, 256, CHANNELS))
    ink = (15, 15, 20)
    if not is_light:
        ground, ink = _strong_colour(rng), (250, 250, 245)
    label = Image.new("RGBA", (width + 2 * edge, height + 2 * edge), (*ground, 255))
    ImageDraw.Draw(label).text((edge, edge // 2), text, font=font, fill=ink)
    turned = label.rotate(float(rng.uniform(-12, 12)), expand=True)
    made.paste(turned, _corner(made, *turned.size, rng), turned)
    return made


def put_watermark(
    image: Image.Image, words: Sequence[str], fonts: Sequence[Path], rng: np.random.Generator
) -> Image.Image:
    """Lay half transparent writing over the image, once or many times."""
    made = image.convert("RGBA")
    layer = Image.new("RGBA", made.size, (255, 255, 255, 0))
    draw = ImageDraw.Draw(layer)
    text = str(rng.choice(words))
    ink = (255, 255, 255, int(rng.uniform(70, 150)))
    if rng.random() < HALF:
        font = _font(fonts, made.width * 0.16, rng)
        width, height = _size(text, font)
        draw.text(
            ((made.width - width) // 2, (made.height - height) // 2), text, font=font, fill=ink
        )
    else:
        font = _font(fonts, made.width * 0.08, rng)
        width, height = _size(text, font)
        for top in range(0, made.height, 3 * height):
            for left in range(-(top % width) // 2, made.width, width + height):
                draw.text((left, top), text, font=font, fill=ink)
    turned = layer.rotate(float(rng.choice([0, 25, 35])))
    return Image.alpha_composite(made, turned).convert("RGB")


def stamp_date(
    image: Image.Image, words: Sequence[str], fonts: Sequence[Path], rng: np.random.Generator
) -> Image.Image:
    """Write a date into a lower corner in orange, yellow or white, as cameras do; `words` are not read."""
    del words
    made = image.convert("RGB")
    year, month, day = rng.integers(1995, 2025), rng.integers(1, 13), rng.integers(1, 29)
    hour, minute = rng.integers(0, 24), rng.integers(0, 60)
    forms = (
        f"{year}/{month:02}/{day:02}",
        f"{day:02}.{month:02}.{year}",
        f"'{year % 100:02} {month:2} {day:2}",
        f"{year}-{month:02}-{day:02} {hour:02}:{minute:02}",
    )
    text = str(rng.choice(forms))
    font = _font(fonts, made.width * rng.uniform(0.055, 0.085), rng)
    width, height = _size(text, font)
    edge = round(0.04 * made.width)
    left = made.width - width - edge if rng.random() < MOSTLY else edge
    ink = ((255, 140, 30), (250, 210, 60), (250, 250, 250))[int(rng.integers(3))]
    ImageDraw.Draw(made).text((left, made.height - height - 2 * edge), text, font=font, fill=ink)
    return made


Writing = Callable[[Image.Image, Sequence[str], Sequence[Path], np.random.Generator], Image.Image]
WRITINGS: Mapping[str, Writing] = MappingProxyType(
    {
        "text": write_word,
        "label": stick_label,
        "watermark": put_watermark,
        "date stamp": stamp_date,
    }
)


def _font(fonts: Sequence[Path], size: float, rng: np.random.Generator) -> Font:
    """Return one of the fonts at a size in pixels; without any, the one that comes with Pillow."""
    if not fonts:
        return ImageFont.load_default(max(8.0, size))
    return ImageFont.truetype(str(fonts[int(rng.integers(len(fonts)))]), max(8.0, size))


def _size(text: str, font: Font) -> tuple[int, int]:
    box = ImageDraw.Draw(Image.new("RGB", (1, 1))).multiline_textbbox((0, 0), text, font=font)
    return max(1, round(box[2])), max(1, round(box[3]))


def _corner(
    image: Image.Image, width: int, height: int, rng: np.random.Generator
) -> tuple[int, int]:
    return (
        int(rng.integers(0, max(1, image.width - width))),
        int(rng.integers(0, max(1, image.height - height))),
    )


def _strong_colour(rng: np.random.Generator) -> tuple[int, int, int]:
    values = rng.choice([rng.integers(0, DARKEST), rng.integers(LIGHTEST, 256)], CHANNELS)
    return int(values[0]), int(values[1]), int(values[2])
