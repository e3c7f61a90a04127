"""Running a pipeline so that a picture depends on its prompt and seed, and as little as can be on what is drawn with it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from weakspot.backends.diffusers_source import PipelineSource
from weakspot.core.arrays import AnyArray, FloatArray
from weakspot.core.drawn import PASS
from weakspot.core.errors import ConfigError, ModelError

NOT_FINITE = "not-finite"
UNSAFE = "unsafe"
_SEEDS = 2**63
_GREY, _COLOUR = 1, 3
_WITH_CHANNELS = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawnPixels:
    """What a pipeline gave for one picture.

    Args:
        values: [h, w, 3], 0 to 1 if they are finite.
        is_blackened: whether the pipeline says that it has blackened the picture; None if it says nothing.
    """

    values: FloatArray
    is_blackened: bool | None = None

    @property
    def is_finite(self) -> bool:
        """Return whether every value is a number."""
        return bool(np.isfinite(self.values).all())

    @property
    def picture(self) -> Image.Image:
        """Return the pixels as a picture; what is no number is black."""
        values = np.nan_to_num(self.values, nan=0.0, posinf=1.0, neginf=0.0).clip(0.0, 1.0)
        return Image.fromarray(np.rint(values * 255.0).astype(np.uint8))

    @property
    def verdicts(self) -> dict[str, str]:
        """Return what is known of the picture from the pipeline alone."""
        found = {NOT_FINITE: PASS if self.is_finite else "the pipeline gave values that are not numbers"}
        if self.is_blackened is not None:
            found[UNSAFE] = "the pipeline's own checker flagged the picture and blackened it" if self.is_blackened else PASS
        return found


def refuse_unequal(n_seeds: int, **others: int) -> None:
    """Refuse inputs that are not as many as the seeds."""
    if any(number != n_seeds for number in others.values()):
        raise ConfigError("Every picture needs one seed.", given={**others, "seeds": n_seeds})


def draw(
    source: PipelineSource, pipeline: Any, seeds: Sequence[int], inputs: Callable[[Sequence[int]], dict[str, Any]]
) -> list[DrawnPixels]:
    """Return one picture a seed.

    Each picture has a random generator of its own, on the processor whatever the device. With one picture a call nothing else can
    decide about it. With several, libraries choose how to add up by the number of pictures, and the rounding follows. So every call
    has the same number: the last picture is repeated where some are missing, and the copies are thrown away. What is left is that
    threads may share a batch by place, which changes the last bits of a sum.

    Args:
        source: where the pipeline comes from.
        pipeline: what is called.
        seeds: one a picture.
        inputs: arguments of the call for pictures by number.

    Raises:
        ModelError: if the pipeline fails.
    """
    # A scheduler with a noise sampler draws for the whole batch at once, from one seed.
    size = 1 if hasattr(getattr(pipeline, "scheduler", None), "noise_sampler") else source.settings.batch_size
    drawn: list[DrawnPixels] = []
    for start in range(0, len(seeds), size):
        wanted = list(range(start, min(start + size, len(seeds))))
        filled = wanted + [wanted[-1]] * (size - len(wanted))
        with source.running(seeds[start] % _SEEDS):
            generators = [source.torch.Generator(device="cpu").manual_seed(seeds[row] % _SEEDS) for row in filled]
            output = pipeline(**inputs(filled), generator=generators, output_type="np")
        drawn += _pixels(output, len(filled), source)[: len(wanted)]
    return drawn


def _pixels(output: Any, n_pictures: int, source: PipelineSource) -> list[DrawnPixels]:
    images = list(output.images)
    if len(images) != n_pictures:
        raise ModelError(f"The pipeline gave {len(images)} pictures where {n_pictures} are due.", where=source.settings.model)
    flags = getattr(output, "nsfw_content_detected", None) or [None] * n_pictures
    return [
        DrawnPixels(values=_three_channels(image, source), is_blackened=None if flag is None else bool(flag))
        for image, flag in zip(images, flags, strict=True)
    ]


def _three_channels(image: AnyArray, source: PipelineSource) -> FloatArray:
    values = np.asarray(image, dtype=np.float32)
    if values.ndim != _WITH_CHANNELS or values.shape[2] not in (_GREY, _COLOUR) or not values.size:
        raise ModelError("The pipeline gives no pictures with three colours.", where=source.settings.model, given=values.shape)
    return np.repeat(values, _COLOUR, axis=2) if values.shape[2] == _GREY else values
