"""Pre-processing of a transformers image classifier, as its own processor would do it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from PIL import Image

from weakspot.backends.hub_preprocessing import preprocessing_of_processor
from weakspot.backends.preprocessing import Preprocessing
from weakspot.core.arrays import AnyArray

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
    unusual = [key for key, value in stated.items() if key not in PLAIN_KEYS and value not in (None, False)]
    size = stated.get("size")
    if unusual or not stated.get("do_resize") or not isinstance(size, Mapping):
        return None
    if "shortest_edge" in size and not stated.get("do_center_crop"):
        return _with_crop_share(stated, where=where)
    if "height" in size and stated.get("do_center_crop"):
        return _exact(stated, where=where) if dict(size) == dict(stated.get("crop_size") or {}) else None
    is_plain = set(size) in ({"shortest_edge"}, {"height", "width"})
    return _centred_down(stated, where=where) if is_plain else None


def _with_crop_share(stated: Mapping[str, Any], *, where: str) -> Preprocessing | None:
    """Cut out a share of the resized picture (ConvNeXt); large sides are squeezed instead."""
    side, share = int(stated["size"]["shortest_edge"]), stated.get("crop_pct")
    if share is None:
        return None
    if side >= LARGE_SIDE:
        return _exact({**stated, "size": {"height": side, "width": side}}, where=where)
    resized = {"shortest_edge": int(side / share)}
    cropped = {"height": side, "width": side}
    return _centred_down({**stated, "size": resized, "do_center_crop": True, "crop_size": cropped}, where=where)


def _exact(stated: Mapping[str, Any], *, where: str) -> Preprocessing:
    return preprocessing_of_processor({**stated, "do_center_crop": False}, where=where)


def _centred_down(stated: Mapping[str, Any], *, where: str) -> Preprocessing:
    return replace(preprocessing_of_processor(stated, where=where), centring="down")


def processor_call(processor: Any) -> Callable[[Image.Image], AnyArray]:
    """Return a function that prepares one picture with a transformers processor."""

    def prepare(picture: Image.Image) -> AnyArray:
        return np.asarray(processor(images=picture, return_tensors="np")["pixel_values"][0], dtype=np.float32)

    return prepare
