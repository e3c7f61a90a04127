"""Images to the numbers that a network takes: the one place where that is done, also by a hub model's `preprocessor_config.json`.

That file is read as pre-processing of our own, so that no image library beyond Pillow is needed.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray
from weakspot.core.errors import ConfigError, ModelError, raise_all

RESAMPLES = {
    "nearest": Image.Resampling.NEAREST,
    "lanczos": Image.Resampling.LANCZOS,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "box": Image.Resampling.BOX,
    "hamming": Image.Resampling.HAMMING,
}
CROPS = ("centre", "none")
LAYOUTS = ("channels-first", "channels-last")
COLOURS = ("rgb", "bgr", "grey")


@dataclass(frozen=True, kw_only=True)
class Preprocessing:
    """How an image becomes numbers: resize, crop, scale, normalise, lay out.

    What a user may say of it is in `IMAGE_OPTIONS`; whatever is left out comes from the model or from the defaults here.

    Args:
        height: of what the network takes.
        width: of what the network takes.
        resize_side: the shorter side is resized to this before the centre is cut out; by default the longer of height and width.
        crop: `centre` keeps the aspect ratio and cuts out the centre; `none` squeezes the whole image into height x width.
        resample: filter of the resize.
        scale: pixels 0 to 255 are multiplied by this.
        mean: subtracted after scaling, one number a channel.
        std: divided by after that, one number a channel.
        colour: order of the channels, or `grey` for a single one.
        layout: [channels, height, width] or [height, width, channels].
        dtype: kind of number; uint8 pixels are neither scaled nor normalised.
        centring: where half a pixel goes when the centre is cut out: `round` as torchvision and timm do, `down` as transformers.
    """

    height: int
    width: int
    resize_side: int | None = None
    crop: str = "centre"
    resample: str = "bicubic"
    scale: float = 1 / 255
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    std: tuple[float, ...] = (1.0, 1.0, 1.0)
    colour: str = "rgb"
    layout: str = "channels-first"
    dtype: str = "float32"
    centring: str = "round"

    def __post_init__(self) -> None:
        """Report every setting that cannot be used, at once."""
        raise_all(
            _problems(self),
            error=ConfigError,
            what="Images cannot be prepared like this:",
            where="classifier settings",
        )

    @property
    def needed_side(self) -> int:
        """Return the shortest image side from which nothing is lost."""
        longest = max(self.height, self.width)
        return longest if self.crop == "none" else max(longest, self.resize_side or 0)

    @property
    def n_channels(self) -> int:
        return 1 if self.colour == "grey" else 3

    def apply(self, image: Image.Image) -> AnyArray:
        """Return one image as the network takes it, without a batch axis."""
        mode = "L" if self.colour == "grey" else "RGB"
        resized = self._resize(image if image.mode == mode else image.convert(mode))
        pixels = np.asarray(resized).reshape(self.height, self.width, self.n_channels)
        if self.colour == "bgr":
            pixels = pixels[:, :, ::-1]
        planes = pixels.transpose(2, 0, 1)
        numbers = planes if self.dtype == "uint8" else self._normalise(planes)
        ordered = numbers if self.layout == "channels-first" else numbers.transpose(1, 2, 0)
        return np.ascontiguousarray(ordered)

    def as_settings(self) -> dict[str, Any]:
        return asdict(self)

    def _normalise(self, planes: AnyArray) -> AnyArray:
        """Return colours [c, height, width] as numbers; plane by plane in place, which takes a fifth of the time of all at once."""
        numbers = planes.astype(np.float32, order="C")
        numbers *= np.float32(self.scale)
        for channel in range(self.n_channels):
            numbers[channel] -= np.float32(self.mean[channel])
            numbers[channel] /= np.float32(self.std[channel])
        return numbers.astype(self.dtype, copy=False)

    def _resize(self, image: Image.Image) -> Image.Image:
        filter_ = RESAMPLES[self.resample]
        if self.crop == "none":
            return image.resize((self.width, self.height), filter_)
        scaled = resize_shorter_side(
            image, self.resize_side or max(self.height, self.width), self.resample
        )
        whole = round if self.centring == "round" else int
        left, top = whole((scaled.width - self.width) / 2), whole((scaled.height - self.height) / 2)
        return scaled.crop((left, top, left + self.width, top + self.height))


def resize_shorter_side(image: Image.Image, side: int, resample: str = "bicubic") -> Image.Image:
    """Return the image with its shorter side resized to `side`, the longer one rounded down."""
    shorter = min(image.size)
    width, height = (
        side if length == shorter else int(side * length / shorter) for length in image.size
    )
    return (
        image
        if image.size == (width, height)
        else image.resize((width, height), RESAMPLES[resample])
    )


IMAGE_OPTIONS = (
    "image_side",
    *(
        field.name
        for field in fields(Preprocessing)
        if field.name not in {"height", "width", "dtype", "centring"}
    ),
)
"""`image_side` is one number or (height, width), the others are fields of `Preprocessing`; mean and std may be one number."""


def preprocessing_from(settings: Mapping[str, Any], **from_model: Any) -> Preprocessing:
    """Return pre-processing from what the user set, then what the model says, then the defaults.

    Args:
        settings: the user's, by the names of `IMAGE_OPTIONS`.
        from_model: fields of `Preprocessing` that the model itself declares.

    Raises:
        ConfigError: if a setting is unknown or impossible, or the size is nowhere given.
    """
    known = ", ".join(IMAGE_OPTIONS)
    raise_all(
        [
            f"{name}: there is no such option (known for images: {known})"
            for name in sorted(settings.keys() - set(IMAGE_OPTIONS))
        ],
        error=ConfigError,
        what="Some options cannot be used:",
        where="classifier settings",
    )
    stated = (*from_model.items(), *settings.items())
    chosen = {name: value for name, value in stated if value is not None}
    if "image_side" in chosen:
        chosen["height"], chosen["width"] = sides(chosen.pop("image_side"))
    if not {"height", "width"} <= chosen.keys():
        raise ConfigError(
            "The model does not say how large its images are.",
            fix="Set image_side, for example 224.",
        )
    for name in ("mean", "std"):
        if name in chosen:
            chosen[name] = _per_channel(chosen[name])
    return Preprocessing(**chosen)


def sides(given: int | Sequence[int]) -> tuple[int, int]:
    """Return (height, width) of a side given as one number or two."""
    pair = tuple(given) if isinstance(given, Sequence) else (given, given)
    if len(pair) != 2 or not all(isinstance(side, int) and side > 0 for side in pair):  # noqa: PLR2004 - height and width
        raise ConfigError(
            "image_side is one whole number of pixels or [height, width].", given=given
        )
    return pair[0], pair[1]


def is_number(value: object) -> bool:
    """Return whether a setting is a finite number, and not a truth value or a text that looks like one."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _per_channel(given: float | Sequence[float]) -> tuple[float, ...]:
    numbers = tuple(given) if isinstance(given, Sequence) else (given,) * 3
    return numbers * 3 if len(numbers) == 1 else numbers


def _problems(wanted: Preprocessing) -> list[str]:
    problems = []
    choices = (
        ("crop", CROPS),
        ("resample", tuple(RESAMPLES)),
        ("layout", LAYOUTS),
        ("colour", COLOURS),
        ("centring", ("round", "down")),
    )
    for name, allowed in choices:
        if getattr(wanted, name) not in allowed:
            problems.append(f"{name}: {getattr(wanted, name)!r} is none of {', '.join(allowed)}")
    return problems + _number_problems(wanted)


def _number_problems(wanted: Preprocessing) -> list[str]:
    problems = []
    for name in ("mean", "std"):
        numbers = getattr(wanted, name)
        if len(numbers) not in {wanted.n_channels, 3} or not all(map(is_number, numbers)):
            problems.append(f"{name}: {list(numbers)} is not one number a channel")
    if 0 in wanted.std:
        problems.append("std: holds a zero, and images are divided by it")
    if not is_number(wanted.scale):
        problems.append(f"scale: {wanted.scale!r} is no number")
    side: object = wanted.resize_side
    if side is not None and not isinstance(side, int):
        problems.append(f"resize_side: {side!r} is no whole number of pixels")
    elif (
        wanted.crop == "centre"
        and isinstance(side, int)
        and side < max(wanted.height, wanted.width)
    ):
        problems.append(f"resize_side: {side} is smaller than the centre that is cut out")
    return problems


_CENTRED = (0.5, 0.5, 0.5)


def preprocessing_of_processor(given: Mapping[str, Any], *, where: str) -> Preprocessing:
    """Return the pre-processing that a processor file describes.

    Args:
        given: content of `preprocessor_config.json`, or of `processor_config.json` with an `image_processor` part.
        where: the file, for messages.

    Raises:
        ModelError: if it cannot be read as resize, crop, scale and normalise.
    """
    stated = given.get("image_processor", given)
    try:
        size = stated["size"]
        crop = stated.get("crop_size") if stated.get("do_center_crop") else None
        height, width = _sides(crop if crop is not None else size)
        return Preprocessing(
            height=height,
            width=width,
            resize_side=min(_sides(size))
            if crop is not None and stated.get("do_resize", True)
            else None,
            crop="none" if crop is None and _is_exact(size) else "centre",
            resample=_resample(stated.get("resample", "bicubic")),
            scale=float(stated.get("rescale_factor", 1 / 255))
            if stated.get("do_rescale", True)
            else 1.0,
            mean=_numbers(stated.get("image_mean", _CENTRED))
            if stated.get("do_normalize", True)
            else (0.0, 0.0, 0.0),
            std=_numbers(stated.get("image_std", _CENTRED))
            if stated.get("do_normalize", True)
            else (1.0, 1.0, 1.0),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(
            f"The file says in an unknown way how images are prepared: {error!r}.",
            where=where,
            fix="State size, crop_size, resample, image_mean and image_std as CLIP does.",
        ) from error


def _sides(given: Any) -> tuple[int, int]:
    if isinstance(given, Mapping):
        if "shortest_edge" in given:
            return int(given["shortest_edge"]), int(given["shortest_edge"])
        return int(given["height"]), int(given["width"])
    if isinstance(given, Sequence):
        height, width = given
        return int(height), int(width)
    return int(given), int(given)


def _is_exact(size: Any) -> bool:
    return isinstance(size, Sequence) or (isinstance(size, Mapping) and "height" in size)


def _resample(given: Any) -> str:
    by_number = {int(kind): name for name, kind in RESAMPLES.items()}
    return by_number[given] if isinstance(given, int) else str(given).lower()


def _numbers(given: Any) -> tuple[float, ...]:
    return tuple(float(number) for number in given)


PLAIN_KEYS = frozenset(
    {
        "image_processor_type", "feature_extractor_type", "processor_class", "do_resize", "size", "resample", "do_rescale",
        "rescale_factor", "do_normalize", "image_mean", "image_std", "do_center_crop", "crop_size", "do_convert_rgb", "crop_pct",
        "data_format", "input_data_format", "return_tensors", "device", "disable_grouping", "default_to_square", "image_seq_length",
        "_processor_class", "_valid_processor_keys", "transformers_version", "model_input_names", "pad_size",
    }
)  # fmt: skip
LARGE_SIDE = 384


def plain_preprocessing(stated: Mapping[str, Any], *, where: str) -> Preprocessing | None:
    """Return a processor's settings as our own pre-processing, or None if it does more than resize, crop, scale and normalise.

    Args:
        stated: all settings of the processor, defaults included.
        where: the model, for messages.
    """
    unusual = [
        key for key, value in stated.items() if key not in PLAIN_KEYS and value not in (None, False)
    ]
    size = stated.get("size")
    if unusual or not stated.get("do_resize") or not isinstance(size, Mapping):
        return None
    if "shortest_edge" in size and not stated.get("do_center_crop"):
        return _with_crop_share(stated, where=where)
    if "height" in size and stated.get("do_center_crop"):
        return (
            _exact(stated, where=where)
            if dict(size) == dict(stated.get("crop_size") or {})
            else None
        )
    is_plain = set(size) in ({"shortest_edge"}, {"height", "width"})
    return _centred_down(stated, where=where) if is_plain else None


def _with_crop_share(stated: Mapping[str, Any], *, where: str) -> Preprocessing | None:
    """Cut out a share of the resized image (ConvNeXt); large sides are squeezed instead."""
    side, share = int(stated["size"]["shortest_edge"]), stated.get("crop_pct")
    if share is None:
        return None
    if side >= LARGE_SIDE:
        return _exact({**stated, "size": {"height": side, "width": side}}, where=where)
    resized = {"shortest_edge": int(side / share)}
    cropped = {"height": side, "width": side}
    return _centred_down(
        {**stated, "size": resized, "do_center_crop": True, "crop_size": cropped}, where=where
    )


def _exact(stated: Mapping[str, Any], *, where: str) -> Preprocessing:
    return preprocessing_of_processor({**stated, "do_center_crop": False}, where=where)


def _centred_down(stated: Mapping[str, Any], *, where: str) -> Preprocessing:
    return replace(preprocessing_of_processor(stated, where=where), centring="down")


def processor_call(processor: Any) -> Callable[[Image.Image], AnyArray]:

    def prepare(image: Image.Image) -> AnyArray:
        return np.asarray(
            processor(images=image, return_tensors="np")["pixel_values"][0], dtype=np.float32
        )

    return prepare
