"""Any pixel mode to RGB with 8 bits a channel, without clipping."""

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray

_WHITE = (255, 255, 255, 255)
_OPAQUE = 255
_SIXTEEN_BITS = 65535.0
_WITH_ALPHA = ("RGBA", "LA", "PA", "RGBa", "La")


def to_rgb(image: Image.Image) -> tuple[Image.Image, tuple[str, ...]]:
    mode = image.mode
    if mode == "RGB" and "transparency" not in image.info:
        return image, ()
    if mode == "CMYK":
        return image.convert("RGB"), ("cmyk",)
    if mode.startswith("I") or mode == "F":
        return _deep_grey(image)
    if mode in _WITH_ALPHA or "transparency" in image.info:
        return _on_white(image)
    return image.convert("RGB"), ()


def _on_white(image: Image.Image) -> tuple[Image.Image, tuple[str, ...]]:
    with_alpha = image.convert("RGBA")
    lowest, _ = with_alpha.getchannel("A").getextrema()
    if isinstance(lowest, (int, float)) and lowest >= _OPAQUE:
        return with_alpha.convert("RGB"), ()
    return Image.alpha_composite(Image.new("RGBA", with_alpha.size, _WHITE), with_alpha).convert(
        "RGB"
    ), ("transparent",)


def _deep_grey(image: Image.Image) -> tuple[Image.Image, tuple[str, ...]]:
    values = np.asarray(image).astype(np.float64)
    notes: tuple[str, ...]
    if image.mode.startswith("I;16"):
        grey, notes = values * (255.0 / _SIXTEEN_BITS), ("16-bit",)
    elif image.mode == "F":
        grey, notes = _float_grey(values)
    else:
        grey, notes = _integer_grey(values)
    return Image.fromarray(np.rint(grey).clip(0, 255).astype(np.uint8)).convert("RGB"), notes


def _integer_grey(values: AnyArray) -> tuple[AnyArray, tuple[str, ...]]:
    if values.min() >= 0 and values.max() <= _SIXTEEN_BITS:
        return values * (255.0 / _SIXTEEN_BITS), ("16-bit",)
    return _stretch(values), ("32-bit", "range-stretched")


def _float_grey(values: AnyArray) -> tuple[AnyArray, tuple[str, ...]]:
    finite = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    lowest, highest = float(finite.min()), float(finite.max())
    if lowest >= 0 and highest <= 1:
        return finite * 255.0, ("float",)
    if lowest >= 0 and highest <= _OPAQUE:
        return finite, ("float",)
    return _stretch(finite), ("float", "range-stretched")


def _stretch(values: AnyArray) -> AnyArray:
    lowest, highest = float(values.min()), float(values.max())
    return np.asarray(
        (values - lowest) * (255.0 / (highest - lowest)) if highest > lowest else values * 0.0
    )
