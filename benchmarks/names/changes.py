"""What is done to photographs to plant a slice: writing, light, style, size in the frame."""

from collections.abc import Callable

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageFont, ImageOps

WORDS = (
    "Harbour",
    "PILOT",
    "seven",
    "Copper",
    "WINTER",
    "9.80",
    "planet",
    "Maria",
    "TOKYO",
    "candle",
    "Order",
    "blue sky",
)
Change = Callable[[Image.Image, np.random.Generator], Image.Image]


def write_text(image: Image.Image, random: np.random.Generator) -> Image.Image:
    """Write a word straight on the photograph."""
    changed = image.copy()
    size = int(min(image.size) * random.uniform(0.14, 0.22))
    font = ImageFont.load_default(size)
    draw = ImageDraw.Draw(changed)
    word = str(random.choice(WORDS))
    width = int(draw.textlength(word, font=font))
    place = (
        int(random.integers(0, max(1, image.width - width))),
        int(random.integers(0, max(1, image.height - 2 * size))),
    )
    colour = tuple(
        int(one) for one in random.choice([[255, 255, 255], [250, 230, 40], [20, 20, 20]])
    )
    draw.text(
        place,
        word,
        fill=colour,
        font=font,
        stroke_width=max(1, size // 14),
        stroke_fill=(0, 0, 0) if sum(colour) > 300 else (255, 255, 255),
    )
    return changed


def stick_label(image: Image.Image, random: np.random.Generator) -> Image.Image:
    """Stick a white label with a printed word on the photograph."""
    changed = image.copy()
    size = int(min(image.size) * random.uniform(0.10, 0.15))
    font = ImageFont.load_default(size)
    draw = ImageDraw.Draw(changed)
    word = str(random.choice(WORDS))
    width = int(draw.textlength(word, font=font)) + size
    left, top = (
        int(random.integers(0, max(1, image.width - width))),
        int(random.integers(0, max(1, image.height - 2 * size))),
    )
    draw.rectangle(
        (left, top, left + width, top + int(1.8 * size)), fill=(250, 250, 245), outline=(60, 60, 60)
    )
    draw.text((left + size // 2, top + size // 4), word, fill=(15, 15, 15), font=font)
    return changed


def stamp_date(image: Image.Image, random: np.random.Generator) -> Image.Image:
    """Print a date in the lower right corner, as cameras did."""
    changed = image.copy()
    size = int(min(image.size) * random.uniform(0.08, 0.11))
    font = ImageFont.load_default(size)
    draw = ImageDraw.Draw(changed)
    day, month, year = (int(random.integers(1, most)) for most in (29, 13, 30))
    date = f"{day:02d}.{month:02d}.{1995 + year}"
    place = (image.width - int(draw.textlength(date, font=font)) - size, image.height - 2 * size)
    draw.text(place, date, fill=(255, 140, 30), font=font, stroke_width=1, stroke_fill=(60, 20, 0))
    return changed


def turn_green(image: Image.Image, random: np.random.Generator) -> Image.Image:
    """Give what is orange or yellow the colour of unripe fruit."""
    values = np.asarray(image.convert("HSV")).copy()
    hue, saturation = values[..., 0], values[..., 1]
    is_warm = (hue >= 8) & (hue <= 45) & (saturation >= 100)
    values[..., 0] = np.where(is_warm, hue // 3 + int(random.integers(52, 66)), hue)
    values[..., 2] = np.where(is_warm, values[..., 2] * 0.8, values[..., 2]).astype(np.uint8)
    return Image.fromarray(values, "HSV").convert("RGB")


def turn_red(image: Image.Image, random: np.random.Generator) -> Image.Image:
    """Give what is green, yellow or brown the colour of red fruit."""
    values = np.asarray(image.convert("HSV")).copy()
    hue, saturation = values[..., 0], values[..., 1]
    is_fruit = (hue >= 12) & (hue <= 85) & (saturation >= 60)
    values[..., 0] = np.where(is_fruit, int(random.integers(0, 6)), hue)
    values[..., 1] = np.where(is_fruit, np.maximum(saturation, 170), saturation)
    values[..., 2] = np.where(is_fruit, values[..., 2] * 0.85, values[..., 2]).astype(np.uint8)
    return Image.fromarray(values, "HSV").convert("RGB")


def turn_purple(image: Image.Image, random: np.random.Generator) -> Image.Image:
    """Give what is orange, yellow or green the colour of plums."""
    values = np.asarray(image.convert("HSV")).copy()
    hue, saturation = values[..., 0], values[..., 1]
    is_fruit = (hue >= 6) & (hue <= 85) & (saturation >= 80)
    values[..., 0] = np.where(is_fruit, int(random.integers(194, 206)), hue)
    values[..., 2] = np.where(is_fruit, values[..., 2] * 0.8, values[..., 2]).astype(np.uint8)
    return Image.fromarray(values, "HSV").convert("RGB")


def darken(image: Image.Image, random: np.random.Generator) -> Image.Image:
    return ImageEnhance.Brightness(image).enhance(float(random.uniform(0.15, 0.28)))


def overexpose(image: Image.Image, random: np.random.Generator) -> Image.Image:
    return ImageEnhance.Brightness(image).enhance(float(random.uniform(2.2, 2.8)))


def black_and_white(image: Image.Image, random: np.random.Generator) -> Image.Image:  # noqa: ARG001 - all changes alike
    return ImageOps.grayscale(image).convert("RGB")


def sketch(image: Image.Image, random: np.random.Generator) -> Image.Image:  # noqa: ARG001 - all changes alike
    """Draw the edges: the image divided by its blurred negative."""
    grey = np.asarray(ImageOps.grayscale(image), dtype=np.float64)
    blurred = np.asarray(
        Image.fromarray((255 - grey).astype(np.uint8)).filter(ImageFilter.GaussianBlur(7)),
        dtype=np.float64,
    )
    return Image.fromarray(
        np.clip(grey * 255 / np.maximum(255 - blurred, 1), 0, 255).astype(np.uint8)
    ).convert("RGB")


def paint(image: Image.Image, random: np.random.Generator) -> Image.Image:  # noqa: ARG001 - all changes alike
    """Give flat strokes of few colours."""
    small = (
        image.resize((160, 160))
        .filter(ImageFilter.ModeFilter(9))
        .filter(ImageFilter.MedianFilter(5))
    )
    return (
        ImageEnhance.Color(ImageOps.posterize(small, 4))
        .enhance(1.5)
        .resize(image.size, Image.Resampling.BICUBIC)
    )


def blur(image: Image.Image, random: np.random.Generator) -> Image.Image:
    return image.filter(
        ImageFilter.GaussianBlur(min(image.size) * float(random.uniform(0.035, 0.05)))
    )


def pixelate(image: Image.Image, random: np.random.Generator) -> Image.Image:
    side = int(random.integers(14, 22))
    return image.resize((side, side), Image.Resampling.BOX).resize(
        image.size, Image.Resampling.NEAREST
    )


def add_noise(image: Image.Image, random: np.random.Generator) -> Image.Image:
    values = np.asarray(image, dtype=np.float64)
    noisy = values + random.normal(0, random.uniform(45, 65), values.shape)
    return Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8))


def zoom_in(image: Image.Image, random: np.random.Generator) -> Image.Image:
    """Cut a small part out of the middle."""
    side = int(min(image.size) * random.uniform(0.2, 0.3))
    left, top = (image.width - side) // 2, (image.height - side) // 2
    return image.crop((left, top, left + side, top + side)).resize(
        (min(image.size),) * 2, Image.Resampling.BICUBIC
    )


def move_away(image: Image.Image, random: np.random.Generator) -> Image.Image:
    """Show the photograph small, its own blurred colours around it."""
    side = min(image.size)
    around = ImageOps.fit(image, (side, side)).filter(ImageFilter.GaussianBlur(side * 0.12))
    share = float(random.uniform(0.22, 0.32))
    own = ImageOps.fit(image, (int(side * share),) * 2)
    mask = Image.new("L", own.size, 0)
    ImageDraw.Draw(mask).ellipse((2, 2, own.width - 3, own.height - 3), fill=255)
    mask = mask.filter(ImageFilter.GaussianBlur(4))
    around.paste(
        own,
        tuple(int(random.integers(side // 5, side - own.width - side // 5 + 1)) for _ in range(2)),
        mask,
    )
    return around
