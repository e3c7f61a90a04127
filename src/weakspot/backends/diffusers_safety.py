"""What the safety checker of a pipeline says of pictures, without letting it blacken them."""

from dataclasses import dataclass
from typing import Any

from weakspot.backends.diffusers_drawing import DrawnPixels
from weakspot.backends.diffusers_source import PipelineSource
from weakspot.core.drawn import PASS

CHECKER_CLASS = "StableDiffusionSafetyChecker"
FLAGGED = "the pipeline's safety checker flagged the picture; its pixels are as they were drawn"


@dataclass(frozen=True, kw_only=True, eq=False)
class SafetyChecker:
    """The checker of Stable Diffusion pipelines, taken out of the pipeline.

    Args:
        source: where the pipeline came from.
        checker: the network.
        processor: prepares pictures for it.
    """

    source: PipelineSource
    checker: Any
    processor: Any

    def verdict(self, drawn: DrawnPixels) -> str:
        """Return `pass`, or that the picture was flagged."""
        with self.source.running(0):
            pixels = self.processor(images=[drawn.picture], return_tensors="pt").pixel_values
            prepared = pixels.to(self.source.device, self.checker.dtype)
            _, flags = self.checker(clip_input=prepared, images=[drawn.values.copy()])
        return FLAGGED if flags[0] else PASS


def taken_out(source: PipelineSource, pipeline: Any) -> SafetyChecker | None:
    """Take the checker out of a pipeline, so that it no longer blackens pictures, and return it.

    Checkers of other classes stay: pipelines count on them, and say themselves what they flagged.
    """
    checker = getattr(pipeline, "safety_checker", None)
    if type(checker).__name__ != CHECKER_CLASS:
        return None
    pipeline.register_modules(safety_checker=None)
    return SafetyChecker(source=source, checker=checker, processor=pipeline.feature_extractor)
