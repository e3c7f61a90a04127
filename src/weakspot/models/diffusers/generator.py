"""Images from words by diffusion pipelines, by name or from a folder."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from weakspot.core.bounds import Count
from weakspot.core.errors import ModelError, RefusedPromptError
from weakspot.core.generated import PASS
from weakspot.core.roles import GeneratedImage
from weakspot.models.diffusers.pipeline import (
    UNSAFE,
    GeneratedPixels,
    PipelineModel,
    RetunedPipeline,
    arguments_of,
    refuse_unequal,
)
from weakspot.models.loading import LoadedOnce

CHECKER_CLASS = "StableDiffusionSafetyChecker"
FLAGGED = "the pipeline's safety checker flagged the image; its pixels are as they were drawn"


Checker = Callable[[GeneratedPixels], str]
"""Gives `pass`, or says that the image was flagged."""


def taken_out(source: PipelineModel, pipeline: Any) -> Checker | None:
    """Take the checker of Stable Diffusion out of a pipeline, so that it no longer blackens images, and return it.

    Checkers of other classes stay: pipelines count on them, and say themselves what they flagged.
    """
    network: Any = getattr(pipeline, "safety_checker", None)
    if type(network).__name__ != CHECKER_CLASS:
        return None
    processor = pipeline.feature_extractor
    pipeline.register_modules(safety_checker=None)

    def verdict(drawn: GeneratedPixels) -> str:
        with source.running(0):
            pixels = processor(images=[drawn.image], return_tensors="pt").pixel_values
            prepared = pixels.to(source.place, network.dtype)
            _, flags = network(clip_input=prepared, images=[drawn.values.copy()])
        return FLAGGED if flags[0] else PASS

    return verdict


SAFETY = ("record", "off")
_MAX_PROMPT_LENGTH = 512


def is_editor(class_name: str) -> bool:
    """Return whether a class of pipelines, by its name, only changes images that it is given.

    >>> [is_editor(f"{name}Pipeline") for name in ("FluxKontext", "StableDiffusionInpaint", "Flux2")]
    [True, True, False]
    """
    return any(word in class_name for word in ("Kontext", "Edit", "Pix2Pix", "Inpaint", "Fill"))


@dataclass(kw_only=True, eq=False)
class DiffusersGenerator(RetunedPipeline):
    """Stable Diffusion 1, 2, XL, turbo and 3, FLUX and whatever else diffusers loads as a pipeline from words to images.

    The same prompt and seed give the same image, whatever is asked for with it, as long as the pipeline draws one image a call.
    A larger `batch_size` is faster on a graphics card. Calls are then filled up to full batches (one image costs as much as
    `batch_size`), so that rounding does not follow the number of images; their place in the batch can still change the last bits
    of a sum and so, rarely, a pixel. Another batch size or kind of numbers is another generator.

    Nothing is blackened silently. The safety checker of Stable Diffusion is asked for its verdict, which is recorded, and the
    pixels stay as drawn. Where another pipeline blackens by itself, the verdict says so. An image with values that are not
    numbers has the verdict `not-finite`. A prompt that is longer than every text encoder reads is refused, not cut.

    Args:
        width: in pixels; None for the pipeline's own.
        height: in pixels; None for the pipeline's own.
        batch_size: images a call of the pipeline.
        safety: record, or off to leave the checker out.
    """

    width: Count | None = None
    height: Count | None = None
    batch_size: Count = 1
    safety: str = "record"

    def _problems(self) -> list[str]:
        known = [] if self.safety in SAFETY else [f"safety: {self.safety!r} is not record or off"]
        return [*super()._problems(), *known]

    @LoadedOnce
    def generator_id(self) -> str:
        return self.identity("diffusers", self.safety)

    def generate(self, prompts: Sequence[str], *, seeds: Sequence[int]) -> list[GeneratedImage]:
        """Return one image a prompt, the same for the same prompt and seed.

        Raises:
            RefusedPromptError: if a prompt is longer than the pipeline reads.
            ModelError: if the pipeline cannot be loaded or fails.
        """
        refuse_unequal(len(seeds), prompts=len(prompts))
        if not prompts:
            return []
        pipeline, _ = self._parts
        self._refuse_cut(prompts, pipeline)
        settings = self.call_options(pipeline)
        negative = settings.pop("negative_prompt", None)

        def inputs(rows: Sequence[int]) -> dict[str, Any]:
            unwanted = {} if negative is None else {"negative_prompt": [negative] * len(rows)}
            return {"prompt": [prompts[row] for row in rows], **unwanted, **settings}

        drawn = self.draw(pipeline, list(seeds), inputs)
        images = self.images_of(drawn, prompts, seeds, self.generator_id)
        return [
            replace(image, verdicts=self._verdicts(one))
            for image, one in zip(images, drawn, strict=True)
        ]

    def _verdicts(self, drawn: GeneratedPixels) -> dict[str, str]:
        _, checker = self._parts
        if checker is None or self.safety == "off" or not drawn.is_finite:
            return drawn.verdicts
        return drawn.verdicts | {UNSAFE: checker(drawn)}

    def _refuse_cut(self, prompts: Sequence[str], pipeline: Any) -> None:
        parts = pipeline.components.items()
        tokenizers = [
            part for name, part in parts if name.startswith("tokenizer") and part is not None
        ]
        for prompt in prompts:
            with self.quiet():
                n_over = [
                    len(part(prompt).input_ids) - min(part.model_max_length, _MAX_PROMPT_LENGTH)
                    for part in tokenizers
                ]
            if n_over and min(n_over) > 0:
                raise RefusedPromptError(
                    f"The prompt is {min(n_over)} tokens longer than the pipeline reads; its end would be left out.",
                    where=self.model,
                    given=prompt,
                    fix="Say it in fewer words.",
                )

    @LoadedOnce
    def _parts(self) -> tuple[Any, Checker | None]:
        written_by = arguments_of(self.kind(self.class_name))
        if is_editor(self.class_name):
            raise ModelError(
                f"{self.class_name} changes an image that it is given and draws none from words alone.",
                where=self.model,
                fix="Set the generator to `edit` to have your own images changed, or name a text-to-image pipeline.",
            )
        # What was written as a pipeline that also takes an image may have a sibling of the same parts that takes words alone.
        pipeline = self.pipeline(
            "AutoPipelineForText2Image" if "image" in written_by else "DiffusionPipeline"
        )
        if "prompt" not in arguments_of(type(pipeline)):
            raise ModelError(
                f"{type(pipeline).__name__} draws nothing from words.",
                where=self.model,
                fix="Name a text-to-image pipeline.",
            )
        return pipeline, taken_out(self, pipeline)
