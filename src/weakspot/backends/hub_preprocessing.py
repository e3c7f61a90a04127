"""A hub model's `preprocessor_config.json` as pre-processing of our own, so that no image library beyond Pillow is needed.

Pre-processing of a transformers image classifier, as its own processor would do it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from PIL import Image

from weakspot.backends.preprocessing import RESAMPLES, Preprocessing
from weakspot.core.arrays import AnyArray
from weakspot.core.errors import ModelError

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
