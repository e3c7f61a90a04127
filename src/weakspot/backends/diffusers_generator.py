"""Pictures from words by diffusion pipelines, by name or from a folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weakspot.backends.diffusers_drawing import UNSAFE, DrawnPixels, draw, refuse_unequal
from weakspot.backends.diffusers_safety import SafetyChecker, taken_out
from weakspot.backends.diffusers_source import PipelineSettings, PipelineSource, arguments_of
from weakspot.backends.loaded_once import LoadedOnce
from weakspot.core.errors import ConfigError, ModelError, RefusedPromptError
from weakspot.core.roles import GeneratedPicture
from weakspot.core.sending import Sendable

SAFETY = ("record", "off")
_LONGEST_PROMPT = 512


class DiffusersGenerator(Sendable):
    """Stable Diffusion 1, 2, XL, turbo and 3, FLUX and whatever else diffusers loads as a pipeline from words to pictures.

    The same prompt and seed give the same picture, whatever is asked for with it, as long as the pipeline draws one picture a call.
    A larger `batch_size` is faster on a graphics card. Calls are then filled up to full batches (one picture costs as much as
    `batch_size`), so that rounding does not follow the number of pictures; their place in the batch can still change the last bits
    of a sum and so, rarely, a pixel. Another batch size or kind of numbers is another generator.

    Nothing is blackened silently. The safety checker of Stable Diffusion is asked for its verdict, which is recorded, and the
    pixels stay as drawn. Where another pipeline blackens by itself, the verdict says so. A picture with values that are not
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
        negative_prompt: what pictures are not to show.
        batch_size: pictures a call of the pipeline.
        variant: kind of weight files, for example fp16.
        safety: record, or off to leave the checker out.
    """

    def __init__(  # noqa: PLR0913 - one argument a setting
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
            )
        )
        self._safety = safety

    @LoadedOnce
    def generator_id(self) -> str:
        """Name and hash of weights and of every setting that decides pixels or verdicts."""
        return self._source.identity("diffusers", self._safety)

    def generate(self, prompts: Sequence[str], *, seeds: Sequence[int]) -> list[GeneratedPicture]:
        """Return one picture a prompt, the same for the same prompt and seed.

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
            GeneratedPicture(
                picture=one.picture, prompt=prompt, seed=seed, generator_id=self.generator_id, verdicts=self._verdicts(one)
            )
            for one, prompt, seed in zip(drawn, prompts, seeds, strict=True)
        ]

    def _verdicts(self, drawn: DrawnPixels) -> dict[str, str]:
        _, checker = self._parts
        if checker is None or self._safety == "off" or not drawn.is_finite:
            return drawn.verdicts
        return drawn.verdicts | {UNSAFE: checker.verdict(drawn)}

    def _refuse_cut(self, prompts: Sequence[str], pipeline: Any) -> None:
        """Refuse prompts whose end no text encoder of the pipeline would read."""
        parts = pipeline.components.items()
        tokenizers = [part for name, part in parts if name.startswith("tokenizer") and part is not None]
        for prompt in prompts:
            with self._source.quiet():
                n_over = [len(part(prompt).input_ids) - min(part.model_max_length, _LONGEST_PROMPT) for part in tokenizers]
            if n_over and min(n_over) > 0:
                raise RefusedPromptError(
                    f"The prompt is {min(n_over)} tokens longer than the pipeline reads; its end would be left out.",
                    where=self._source.settings.model,
                    given=prompt,
                    fix="Say it in fewer words.",
                )

    @LoadedOnce
    def _parts(self) -> tuple[Any, SafetyChecker | None]:
        """Return the pipeline, and its safety checker, which it no longer has itself."""
        source = self._source
        written_by = arguments_of(source.kind(source.class_name))
        # What was written as a pipeline that also takes a picture may have a sibling of the same parts that takes words alone.
        pipeline = source.pipeline("AutoPipelineForText2Image" if "image" in written_by else "DiffusionPipeline")
        if "prompt" not in arguments_of(type(pipeline)):
            raise ModelError(
                f"{type(pipeline).__name__} draws nothing from words.",
                where=source.settings.model,
                fix="Name a text-to-image pipeline.",
            )
        return pipeline, taken_out(source, pipeline)
