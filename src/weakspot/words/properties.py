"""What can be measured in an image without any model: light, contrast, sharpness, colour, odd looks; as columns of words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from PIL import Image
from scipy import ndimage

from weakspot.core.arrays import AnyArray, BoolArray, ByteArray, DoubleArray, FloatArray, IntArray
from weakspot.core.errors import ModelError
from weakspot.core.record import Record
from weakspot.core.samples import Attribute, AttributeValue
from weakspot.words.attribute_columns import AssignedColumn, LeftOut, binned, words_column

SIDE = 256
COLOUR_STEP = 4
GREY_WEIGHTS = np.array([0.299, 0.587, 0.114])
N_GREYS = 256
COLOUR_NAMES = (
    "black",
    "grey",
    "white",
    "red",
    "brown",
    "orange",
    "yellow",
    "green",
    "turquoise",
    "blue",
    "purple",
    "pink",
)
MIXED = "mixed"
DOMINANT_SHARE = 0.3

DARKEST, BRIGHTEST = 50, 215
PALE = 40
HALF_PALE = 120
BROWN_BRIGHTNESS = 165
OLIVE_BRIGHTNESS, OLIVE_HUE = 175, 38
HUE_ENDS = (10, 28, 46, 112, 138, 176, 205, 240)
HUE_COLOURS = ("red", "orange", "yellow", "green", "turquoise", "blue", "purple", "pink", "red")


NUMBER_PROPERTIES = {
    "brightness": ("dark", "medium brightness", "bright"),
    "contrast": ("low contrast", "medium contrast", "high contrast"),
    "sharpness": ("blurry", "medium sharpness", "sharp"),
    "entropy": ("few shades", "medium number of shades", "many shades"),
    "colourfulness": ("pale colours", "medium colours", "strong colours"),
}
"""Measured numbers, and the words for their low, middle and high bin."""
SIZE_PROPERTIES = {
    "image size": ("few pixels", "medium number of pixels", "many pixels"),
    "aspect": ("narrow image", "medium aspect", "wide image"),
}
DOMINANT_COLOUR = "dominant colour"
COLOUR_COLUMN = len(NUMBER_PROPERTIES)
SHARE_COLUMN = COLOUR_COLUMN + 1


@dataclass(frozen=True)
class ImageProperties:
    """Measures images; it has the form of an embedder, so that the store of embeddings remembers what was measured."""

    @property
    def encoder_id(self) -> str:
        return "picture-properties-1"

    @property
    def dimension(self) -> int:
        return len(NUMBER_PROPERTIES) + 2

    @property
    def image_side(self) -> int | None:
        return SIDE

    @property
    def has_text(self) -> bool:
        return False

    def prepare(self, image: Image.Image) -> AnyArray:
        return measured(image)

    def embed_prepared(self, prepared: Sequence[AnyArray]) -> FloatArray:
        """Return the measures [n, d]; they are no unit vectors."""
        return (
            np.stack(prepared).astype(np.float32)
            if len(prepared)
            else np.empty((0, self.dimension), dtype=np.float32)
        )

    def embed_texts(self, texts: Sequence[str]) -> NoReturn:
        raise ModelError(
            "Phrases have no image properties.", where=self.encoder_id, given=list(texts)
        )


def measured(image: Image.Image) -> DoubleArray:
    """Return brightness, contrast, sharpness, entropy, colourfulness, dominant colour and its share of an RGB image.

    Brightness and contrast are mean and deviation of grey in [0, 1], sharpness is the logarithm of one plus the variance of the
    Laplacian of grey in [0, 255], entropy is in bits, colourfulness as in Hasler and Suesstrunk (2003).
    """
    small = image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    pixels = np.asarray(small, dtype=np.float64)
    grey = pixels @ GREY_WEIGHTS
    colour, share = dominant_colour(np.asarray(small.convert("HSV"))[::COLOUR_STEP, ::COLOUR_STEP])
    return np.array(
        [
            grey.mean() / 255.0,
            grey.std() / 255.0,
            np.log1p(_laplacian(grey).var()),
            _entropy(grey),
            _colourfulness(pixels),
            colour,
            share,
        ]
    )


def dominant_colour(hsv: ByteArray) -> tuple[int, float]:
    """Return which of `COLOUR_NAMES` most pixels [h, w, 3] have, and their share."""
    counts = np.bincount(colour_codes(hsv).ravel(), minlength=len(COLOUR_NAMES))
    most = int(counts.argmax())
    return most, float(counts[most] / counts.sum())


def colour_codes(hsv: ByteArray) -> AnyArray:
    """Return the position in `COLOUR_NAMES` of every pixel's colour; hue, saturation and value in [0, 255]."""
    hue, saturation, value = (hsv[..., channel].astype(np.int64) for channel in range(3))
    names = np.array([COLOUR_NAMES.index(name) for name in HUE_COLOURS])
    codes = names[np.searchsorted(HUE_ENDS, hue, side="right")]
    is_warm = np.isin(codes, [COLOUR_NAMES.index("red"), COLOUR_NAMES.index("orange")])
    codes = np.where(
        is_warm & (value < BROWN_BRIGHTNESS) & (hue >= HUE_ENDS[0] // 2) & (hue < HUE_ENDS[1]),
        _code("brown"),
        codes,
    )
    codes = np.where(
        (codes == _code("red")) & (saturation < HALF_PALE) & (value >= BROWN_BRIGHTNESS),
        _code("pink"),
        codes,
    )
    is_olive = (codes == _code("yellow")) & (value < OLIVE_BRIGHTNESS) & (hue >= OLIVE_HUE)
    codes = np.where(is_olive, _code("green"), codes)
    codes = np.where(
        saturation < PALE, np.where(value >= BRIGHTEST, _code("white"), _code("grey")), codes
    )
    return np.where(value < DARKEST, _code("black"), codes)


def _code(name: str) -> int:
    return COLOUR_NAMES.index(name)


def _laplacian(grey: DoubleArray) -> DoubleArray:
    around = grey[:-2, 1:-1] + grey[2:, 1:-1] + grey[1:-1, :-2] + grey[1:-1, 2:]
    return np.asarray(around - 4.0 * grey[1:-1, 1:-1])


def _entropy(grey: DoubleArray) -> float:
    shares = np.bincount(np.rint(grey).astype(np.int64).ravel(), minlength=N_GREYS) / grey.size
    shares = shares[shares > 0]
    return float(-(shares * np.log2(shares)).sum()) + 0.0


def _colourfulness(pixels: DoubleArray) -> float:
    red, green, blue = (pixels[..., channel] for channel in range(3))
    red_green, yellow_blue = red - green, 0.5 * (red + green) - blue
    spread = np.hypot(red_green.std(), yellow_blue.std())
    return float(spread + 0.3 * np.hypot(red_green.mean(), yellow_blue.mean()))


LOOKS_SIDE, PATCH = 256, 16
SHARE_OF_LINES = 0.18
QUIET = 20
BURNT, WHOLLY_BURNT, LIGHT = 252, 250, 200
_TO_DEVIATION = float(np.sqrt(np.pi / 2) / 6)


@dataclass(frozen=True, kw_only=True)
class MeasuredLooks:
    """Numbers about the look of an image.

    Args:
        squares: share of all steps of grey that lie on the steepest fifth of columns or of rows, whichever is less; near 1 if the
            image is made of squares.
        noise: deviation of grey from one pixel to the next, in [0, 255], where the image is quietest; after Immerkaer (1996).
        burnt: share of pixels of which some channels, and not all, are at their end.
        light: share of pixels that are nearly white.
    """

    squares: float
    noise: float
    burnt: float
    light: float


def measure_looks(image: Image.Image) -> MeasuredLooks:
    """Return the looks of an RGB image."""
    small = image.convert("RGB").resize((LOOKS_SIDE, LOOKS_SIDE), Image.Resampling.BILINEAR)
    pixels = np.asarray(small, dtype=np.float64)
    grey = pixels @ GREY_WEIGHTS
    is_burnt = (pixels.max(axis=2) >= BURNT) & (pixels.min(axis=2) < WHOLLY_BURNT)
    return MeasuredLooks(
        squares=min(_on_few_lines(grey), _on_few_lines(grey.T)),
        noise=_noise(grey),
        burnt=float(is_burnt.mean()),
        light=float((grey > LIGHT).mean()),
    )


def _on_few_lines(grey: DoubleArray) -> float:
    """Return the share of steps between columns that lie on the few columns where they are largest."""
    steps = np.sort(np.abs(np.diff(grey, axis=1)).mean(axis=0))[::-1]
    total = float(steps.sum())
    return float(steps[: int(SHARE_OF_LINES * len(steps))].sum()) / total if total else 0.0


def _noise(grey: DoubleArray) -> float:
    second = grey[:, :-2] - 2 * grey[:, 1:-1] + grey[:, 2:]
    crossed = np.zeros_like(grey)
    crossed[1:-1, 1:-1] = np.abs(second[:-2] - 2 * second[1:-1] + second[2:])
    patches = crossed.reshape(LOOKS_SIDE // PATCH, PATCH, LOOKS_SIDE // PATCH, PATCH).mean(
        axis=(1, 3)
    )
    return float(np.percentile(patches, QUIET)) * _TO_DEVIATION


PIXELS_IN_MEGAPIXEL = 1e6


def property_columns(
    measures: FloatArray, reference_rows: IntArray
) -> Iterator[AssignedColumn | LeftOut]:
    """Yield a column for each measured property, from measures [n, 7] of `ImageProperties`; NaN where there was no image."""
    for place, (name, words) in enumerate(NUMBER_PROPERTIES.items()):
        numbers = np.asarray(measures[:, place], dtype=np.float64)
        yield _numbers(name, numbers, reference_rows, words)
    yield _dominant(np.asarray(measures[:, COLOUR_COLUMN]), np.asarray(measures[:, SHARE_COLUMN]))


def size_columns(
    widths: AnyArray, heights: AnyArray, reference_rows: IntArray
) -> Iterator[AssignedColumn | LeftOut]:
    """Yield columns for the size and the aspect of images, from their pixels [n]; 0 where there is no image."""
    across, down = (
        np.where(np.asarray(side) > 0, np.asarray(side, dtype=np.float64), np.nan)
        for side in (widths, heights)
    )
    sizes = across * down / PIXELS_IN_MEGAPIXEL, across / down
    for (name, words), numbers in zip(SIZE_PROPERTIES.items(), sizes, strict=True):
        yield _numbers(name, numbers, reference_rows, words)


def _numbers(
    name: str, numbers: DoubleArray, reference_rows: IntArray, words: tuple[str, str, str]
) -> AssignedColumn | LeftOut:
    bins = binned(name, "property", numbers, reference_rows, words)
    return bins or LeftOut(name=name, why="all images are alike in it")


def _dominant(codes: FloatArray, shares: FloatArray) -> AssignedColumn | LeftOut:
    names = (*COLOUR_NAMES, MIXED)
    known = np.isfinite(codes)
    named = np.where(shares >= DOMINANT_SHARE, np.nan_to_num(codes), names.index(MIXED)).astype(
        np.int64
    )
    counts = np.bincount(named[known], minlength=len(names))
    if (counts > 0).sum() < 2:  # noqa: PLR2004 - two bins to tell apart
        return LeftOut(name=DOMINANT_COLOUR, why="all images are alike in it")
    values = tuple(
        AttributeValue(value=name, share=round(float(count) / len(codes), 6))
        for name, count in zip(names, counts, strict=True)
        if count
    )
    missing = round(1.0 - float(known.mean()), 6)
    attribute = Attribute(
        name=DOMINANT_COLOUR,
        column=DOMINANT_COLOUR,
        source="property",
        values=values,
        missing_share=missing,
    )
    return AssignedColumn(
        attribute=attribute, column=words_column(np.where(known, named, -1), names)
    )


OBJECT_SIDE = 128
INSIDE, OUTSIDE = 0.5, 0.1
MIN_PIXELS = 20
EDGE = 24.0
OUTLINE = 2


class ObjectMeasures(Record):
    """Numbers about an object and its background.

    Args:
        refused: why nothing is known; the rest is zero then.
        share: of the image that the object covers.
        across: middle of the object, from 0 (left) to 1 (right).
        down: middle of the object, from 0 (top) to 1 (bottom).
        n_edges: edges of the image that the object touches.
        colours: share of the object in every colour of `COLOUR_NAMES`.
        behind: share of the background in every colour; empty where nothing of it is seen.
        clutter: share of the background that is edges; None where nothing of it is seen.
    """

    refused: str = ""
    share: float = 0.0
    across: float = 0.0
    down: float = 0.0
    n_edges: int = 0
    colours: tuple[float, ...] = ()
    behind: tuple[float, ...] = ()
    clutter: float | None = None


def measure_object(image: Image.Image, coverage: FloatArray) -> ObjectMeasures:
    """Return the measures of an object.

    Args:
        image: in colour.
        coverage: [height, width] of the image, from 0 (elsewhere) to 1 (object).
    """
    scale = OBJECT_SIDE / max(image.size)
    size = (max(round(image.width * scale), 1), max(round(image.height * scale), 1))
    small = image.convert("RGB").resize(size, Image.Resampling.BOX)
    mask = Image.fromarray(np.asarray(coverage, dtype=np.float32)).resize(
        size, Image.Resampling.BOX
    )
    cover = np.asarray(mask)
    inside, outside = cover > INSIDE, cover < OUTSIDE
    if inside.sum() < MIN_PIXELS:
        return ObjectMeasures(refused="the object has too few pixels")
    down, across = np.nonzero(inside)
    edges = (inside[0], inside[-1], inside[:, 0], inside[:, -1])
    codes = colour_codes(np.asarray(small.convert("HSV")))
    has_background = bool(outside.sum() >= MIN_PIXELS)
    return ObjectMeasures(
        share=round(float(inside.mean()), 4),
        across=round(float((across.mean() + 0.5) / size[0]), 4),
        down=round(float((down.mean() + 0.5) / size[1]), 4),
        n_edges=sum(bool(edge.any()) for edge in edges),
        colours=_shares(codes[inside]),
        behind=_shares(codes[outside]) if has_background else (),
        clutter=_clutter(small, outside) if has_background else None,
    )


def _shares(codes: FloatArray) -> tuple[float, ...]:
    counts = np.bincount(codes.astype(np.int64), minlength=len(COLOUR_NAMES))
    return tuple(round(float(one), 4) for one in counts / counts.sum())


def _clutter(image: Image.Image, background: BoolArray) -> float:
    """Return the share of background pixels at which grey changes steeply; the outline of the object does not count."""
    grey = np.asarray(image, dtype=np.float64) @ GREY_WEIGHTS
    down, across = np.gradient(grey) if min(grey.shape) > 1 else (np.zeros_like(grey),) * 2
    steep = np.hypot(down, across) * 2 > EDGE
    apart = ndimage.binary_erosion(background, iterations=OUTLINE, border_value=1)
    return round(float(steep[apart].mean()), 4) if apart.any() else 0.0
