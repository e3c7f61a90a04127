"""A hub model's `preprocessor_config.json` as pre-processing of our own, so that no picture library beyond Pillow is needed."""

from collections.abc import Mapping, Sequence
from typing import Any

from weakspot.backends.preprocessing import RESAMPLES, Preprocessing
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
            resize_side=min(_sides(size)) if crop is not None and stated.get("do_resize", True) else None,
            crop="none" if crop is None and _is_exact(size) else "centre",
            resample=_resample(stated.get("resample", "bicubic")),
            scale=float(stated.get("rescale_factor", 1 / 255)) if stated.get("do_rescale", True) else 1.0,
            mean=_numbers(stated.get("image_mean", _CENTRED)) if stated.get("do_normalize", True) else (0.0, 0.0, 0.0),
            std=_numbers(stated.get("image_std", _CENTRED)) if stated.get("do_normalize", True) else (1.0, 1.0, 1.0),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(
            f"The file says in an unknown way how pictures are prepared: {error!r}.",
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
