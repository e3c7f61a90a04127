"""Images from words by diffusion pipelines, by name or from a folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weakspot.core.errors import ConfigError, ModelError, RefusedPromptError
from weakspot.core.generated import PASS
from weakspot.core.registry import Sendable
from weakspot.core.roles import GeneratedImage
from weakspot.models.diffusers.pipeline import (
    UNSAFE,
    GeneratedPixels,
    PipelineSettings,
    PipelineSource,
    arguments_of,
    draw,
    refuse_unequal,
)
from weakspot.models.loading import LoadedOnce

CHECKER_CLASS = "StableDiffusionSafetyChecker"
FLAGGED = "the pipeline's safety checker flagged the image; its pixels are as they were drawn"


@dataclass(frozen=True, kw_only=True, eq=False)
class SafetyChecker:
    """The checker of Stable Diffusion pipelines, taken out of the pipeline.

    Args:
        source: where the pipeline came from.
        checker: the network.
        processor: prepares images for it.
    """

    source: PipelineSource
    checker: Any
    processor: Any

    def verdict(self, drawn: GeneratedPixels) -> str:
        """Return `pass`, or that the image was flagged."""
        with self.source.running(0):
            pixels = self.processor(images=[drawn.image], return_tensors="pt").pixel_values
            prepared = pixels.to(self.source.device, self.checker.dtype)
            _, flags = self.checker(clip_input=prepared, images=[drawn.values.copy()])
        return FLAGGED if flags[0] else PASS


def taken_out(source: PipelineSource, pipeline: Any) -> SafetyChecker | None:
    """Take the checker out of a pipeline, so that it no longer blackens images, and return it.

    Checkers of other classes stay: pipelines count on them, and say themselves what they flagged.
    """
    checker = getattr(pipeline, "safety_checker", None)
    if type(checker).__name__ != CHECKER_CLASS:
        return None
    pipeline.register_modules(safety_checker=None)
    return SafetyChecker(source=source, checker=checker, processor=pipeline.feature_extractor)


SAFETY = ("record", "off")
_MAX_PROMPT_LENGTH = 512


def is_editor(class_name: str) -> bool:
    """Return whether a class of pipelines, by its name, only changes images that it is given.

    >>> [is_editor(f"{name}Pipeline") for name in ("FluxKontext", "StableDiffusionInpaint", "Flux2")]
    [True, True, False]
    """
    return any(word in class_name for word in ("Kontext", "Edit", "Pix2Pix", "Inpaint", "Fill"))


class DiffusersGenerator(Sendable):
    """Stable Diffusion 1, 2, XL, turbo and 3, FLUX and whatever else diffusers loads as a pipeline from words to images.

    The same prompt and seed give the same image, whatever is asked for with it, as long as the pipeline draws one image a call.
    A larger `batch_size` is faster on a graphics card. Calls are then filled up to full batches (one image costs as much as
    `batch_size`), so that rounding does not follow the number of images; their place in the batch can still change the last bits
    of a sum and so, rarely, a pixel. Another batch size or kind of numbers is another generator.

    Nothing is blackened silently. The safety checker of Stable Diffusion is asked for its verdict, which is recorded, and the
    pixels stay as drawn. Where another pipeline blackens by itself, the verdict says so. An image with values that are not
    numbers has the verdict `not-finite`. A prompt that is longer than every text encoder reads is refused, not cut.

    Args:
        model: name on the hub, or a folder that `save_pretrained` wrote; with a folder nothing is asked of any network.
        revision: branch, tag or commit on the hub.
        device: auto, cpu, cuda, cuda:1, mps.
        dtype: auto, float32, float16 or bfloat16; auto is bfloat16 for FLUX and Stable Diffusion 3 on a graphics card, float16 for
            the others there, and float32 elsewhere.
        steps: denoising steps; None for the pipeline's own number.
        guidance_scale: how closely words are followed; None for the pipeline's own, 0 for turbo kinds.
        width: in pixels; None for the pipeline's own.
        height: in pixels; None for the pipeline's own.
        negative_prompt: what images are not to show.
        batch_size: images a call of the pipeline.
        variant: kind of weight files, for example fp16.
        call: further arguments of the pipeline's call, by their own names.
        scheduler: class of diffusers that takes the place of the pipeline's own scheduler.
        lora: name on the hub, folder or file of a LoRA.
        lora_weight: how much of it.
        offload: model or sequential to keep parts in memory until their turn comes.
        quantise: 4-bit or 8-bit to load the large parts so by bitsandbytes.
        safety: record, or off to leave the checker out.
    """

    def __init__(
        self,
        *,
        model: str | Path,
        revision: str | None = None,
        device: str = "auto",
        dtype: str = "auto",
        steps: int | None = None,
        guidance_scale: float | None = None,
        width: int | None = None,
        height: int | None = None,
        negative_prompt: str = "",
        batch_size: int = 1,
        variant: str | None = None,
        call: Mapping[str, Any] | None = None,
        scheduler: str = "",
        lora: str | Path = "",
        lora_weight: float = 1.0,
        offload: str = "",
        quantise: str = "",
        safety: str = "record",
    ) -> None:
        if safety not in SAFETY:
            raise ConfigError("safety must be record or off.", where="options", given=safety)
        self._source = PipelineSource(
            PipelineSettings(
                model=str(model),
                revision=revision,
                variant=variant,
                device=device,
                dtype=dtype,
                steps=steps,
                guidance_scale=guidance_scale,
                width=width,
                height=height,
                negative_prompt=negative_prompt,
                batch_size=batch_size,
                call=call or {},
                scheduler=scheduler,
                lora=str(lora),
                lora_weight=lora_weight,
                offload=offload,
                quantise=quantise,
            )
        )
        self._safety = safety

    @LoadedOnce
    def generator_id(self) -> str:
        return self._source.identity("diffusers", self._safety)

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
        settings = self._source.call_options(pipeline)
        negative = settings.pop("negative_prompt", None)

        def inputs(rows: Sequence[int]) -> dict[str, Any]:
            unwanted = {} if negative is None else {"negative_prompt": [negative] * len(rows)}
            return {"prompt": [prompts[row] for row in rows], **unwanted, **settings}

        drawn = draw(self._source, pipeline, list(seeds), inputs)
        return [
            GeneratedImage(
                image=one.image,
                prompt=prompt,
                seed=seed,
                generator_id=self.generator_id,
                verdicts=self._verdicts(one),
            )
            for one, prompt, seed in zip(drawn, prompts, seeds, strict=True)
        ]

    def _verdicts(self, drawn: GeneratedPixels) -> dict[str, str]:
        _, checker = self._parts
        if checker is None or self._safety == "off" or not drawn.is_finite:
            return drawn.verdicts
        return drawn.verdicts | {UNSAFE: checker.verdict(drawn)}

    def _refuse_cut(self, prompts: Sequence[str], pipeline: Any) -> None:
        parts = pipeline.components.items()
        tokenizers = [
            part for name, part in parts if name.startswith("tokenizer") and part is not None
        ]
        for prompt in prompts:
            with self._source.quiet():
                n_over = [
                    len(part(prompt).input_ids) - min(part.model_max_length, _MAX_PROMPT_LENGTH)
                    for part in tokenizers
                ]
            if n_over and min(n_over) > 0:
                raise RefusedPromptError(
                    f"The prompt is {min(n_over)} tokens longer than the pipeline reads; its end would be left out.",
                    where=self._source.settings.model,
                    given=prompt,
                    fix="Say it in fewer words.",
                )

    @LoadedOnce
    def _parts(self) -> tuple[Any, SafetyChecker | None]:
        source = self._source
        written_by = arguments_of(source.kind(source.class_name))
        if is_editor(source.class_name):
            raise ModelError(
                f"{source.class_name} changes an image that it is given and draws none from words alone.",
                where=source.settings.model,
                fix="Set the generator to `edit` to have your own images changed, or name a text-to-image pipeline.",
            )
        # What was written as a pipeline that also takes an image may have a sibling of the same parts that takes words alone.
        pipeline = source.pipeline(
            "AutoPipelineForText2Image" if "image" in written_by else "DiffusionPipeline"
        )
        if "prompt" not in arguments_of(type(pipeline)):
            raise ModelError(
                f"{type(pipeline).__name__} draws nothing from words.",
                where=source.settings.model,
                fix="Name a text-to-image pipeline.",
            )
        return pipeline, taken_out(source, pipeline)
