"""Running a pipeline so that an image depends on its prompt and seed, and as little as can be on what is drawn with it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from weakspot.backends.diffusers.source import PipelineSource
from weakspot.core.arrays import AnyArray, FloatArray
from weakspot.core.errors import ConfigError, ModelError
from weakspot.core.generation_requests import PASS

NOT_FINITE = "not-finite"
UNSAFE = "unsafe"
_SEEDS = 2**63
_GREY, _COLOUR = 1, 3
_WITH_CHANNELS = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class GeneratedPixels:
    """What a pipeline gave for one image.

    Args:
        values: [h, w, 3], 0 to 1 if they are finite.
        is_blackened: whether the pipeline says that it has blackened the image; None if it says nothing.
    """

    values: FloatArray
    is_blackened: bool | None = None

    @property
    def is_finite(self) -> bool:
        return bool(np.isfinite(self.values).all())

    @property
    def image(self) -> Image.Image:
        """Return the pixels as an image; what is no number is black."""
        values = np.nan_to_num(self.values, nan=0.0, posinf=1.0, neginf=0.0).clip(0.0, 1.0)
        return Image.fromarray(np.rint(values * 255.0).astype(np.uint8))

    @property
    def verdicts(self) -> dict[str, str]:
        found = {
            NOT_FINITE: PASS if self.is_finite else "the pipeline gave values that are not numbers"
        }
        if self.is_blackened is not None:
            found[UNSAFE] = (
                "the pipeline's own checker flagged the image and blackened it"
                if self.is_blackened
                else PASS
            )
        return found


def refuse_unequal(n_seeds: int, **others: int) -> None:
    if any(number != n_seeds for number in others.values()):
        raise ConfigError("Every image needs one seed.", given={**others, "seeds": n_seeds})


def draw(
    source: PipelineSource,
    pipeline: Any,
    seeds: Sequence[int],
    inputs: Callable[[Sequence[int]], dict[str, Any]],
) -> list[GeneratedPixels]:
    """Return one image a seed.

    Each image has a random generator of its own, on the processor whatever the device. With one image a call nothing else can
    decide about it. With several, libraries choose how to add up by the number of images, and the rounding follows. So every call
    has the same number: the last image is repeated where some are missing, and the copies are thrown away. What is left is that
    threads may share a batch by place, which changes the last bits of a sum.

    Args:
        source: where the pipeline comes from.
        pipeline: what is called.
        seeds: one an image.
        inputs: arguments of the call for images by number.

    Raises:
        ModelError: if the pipeline fails.
    """
    # A scheduler with a noise sampler draws for the whole batch at once, from one seed.
    size = (
        1
        if hasattr(getattr(pipeline, "scheduler", None), "noise_sampler")
        else source.settings.batch_size
    )
    drawn: list[GeneratedPixels] = []
    for start in range(0, len(seeds), size):
        wanted = list(range(start, min(start + size, len(seeds))))
        filled = wanted + [wanted[-1]] * (size - len(wanted))
        with source.running(seeds[start] % _SEEDS):
            generators = [
                source.torch.Generator(device="cpu").manual_seed(seeds[row] % _SEEDS)
                for row in filled
            ]
            output = pipeline(**inputs(filled), generator=generators, output_type="np")
        drawn += _pixels(output, len(filled), source)[: len(wanted)]
    return drawn


def _pixels(output: Any, n_images: int, source: PipelineSource) -> list[GeneratedPixels]:
    images = list(output.images)
    if len(images) != n_images:
        raise ModelError(
            f"The pipeline gave {len(images)} images where {n_images} are due.",
            where=source.settings.model,
        )
    flags = getattr(output, "nsfw_content_detected", None) or [None] * n_images
    return [
        GeneratedPixels(
            values=_three_channels(image, source), is_blackened=None if flag is None else bool(flag)
        )
        for image, flag in zip(images, flags, strict=True)
    ]


def _three_channels(image: AnyArray, source: PipelineSource) -> FloatArray:
    values = np.asarray(image, dtype=np.float32)
    if values.ndim != _WITH_CHANNELS or values.shape[2] not in (_GREY, _COLOUR) or not values.size:
        raise ModelError(
            "The pipeline gives no images with three colours.",
            where=source.settings.model,
            given=values.shape,
        )
    return np.repeat(values, _COLOUR, axis=2) if values.shape[2] == _GREY else values
