"""A user's own images changed as words say, by diffusion pipelines that edit or fill in images."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from PIL import Image, ImageChops

from weakspot.backends.diffusers_pipeline import draw, refuse_unequal
from weakspot.backends.diffusers_source import PipelineSettings, PipelineSource, arguments_of
from weakspot.core.errors import ConfigError, ModelError, RefusedPromptError
from weakspot.core.own_images import OwnImages
from weakspot.core.roles import GeneratedImage
from weakspot.core.seeding import generator
from weakspot.core.sending import Sendable
from weakspot.lexicon.captions import noun_of, plain_caption
from weakspot.lexicon.matching import covers, phrase_words
from weakspot.lexicon.vocabulary import built_in_vocabulary

Mode = Literal["instruct", "fill", "redraw"]
INSTRUCTION = "Change the image into {prompt}. Keep everything else as it is."
INPAINTING, REDRAWING = "AutoPipelineForInpainting", "AutoPipelineForImage2Image"
SIDE = 512
STEP = 16
MOST_TRIED = 50


@dataclass(frozen=True, kw_only=True, eq=False)
class Parent:
    """One of the user's images, ready to be changed.

    Args:
        sample_id: which it is.
        image: with sides that pipelines take.
        mask: white where it is to be drawn anew; None for pipelines that take no mask.
    """

    sample_id: str
    image: Image.Image
    mask: Image.Image | None = None


class DiffusersEditor(Sendable):
    """Changes images of the class that a prompt names so that they show what the prompt says, and keeps the rest.

    What the pipeline takes decides how. *Editing* pipelines (InstructPix2Pix, FLUX.1 Kontext, FLUX.2, Qwen-Image-Edit) get the image
    and an instruction. Pipelines with a *mask* (inpainting and fill kinds of Stable Diffusion, SDXL, FLUX and Qwen-Image) draw anew
    the background where the prompt names a place, and otherwise the object; what lies outside of the mask is that of the image,
    pixel by pixel. A text-to-image pipeline is loaded as its inpainting sibling, or with `mode = "redraw"` as the one that starts
    from a noisy copy of the image.

    The same class and seed take the same image, whatever else the prompt says, so prompts that differ make pairs.

    Args:
        model: name on the hub, or a folder that `save_pretrained` wrote; with a folder nothing is asked of any network.
        mode: instruct, fill or redraw; empty for what the pipeline is made for.
        instruction: what editing pipelines are told; `{prompt}` stands for the prompt.
        side: longest side of the images in pixels, rounded to what pipelines take.
        strength: how much of an image is drawn anew in mode redraw, 0 to 1.
        settings: further settings of the pipeline, see `PipelineSettings`.
    """

    def __init__(
        self,
        *,
        model: str | Path,
        mode: str = "",
        instruction: str = INSTRUCTION,
        side: int = SIDE,
        strength: float = 0.6,
        **settings: Any,
    ) -> None:
        problems = [
            *([] if mode in ("", "instruct", "fill", "redraw") else [f"mode: {mode!r}"]),
            *([] if "{prompt}" in instruction else ["instruction: {prompt} is missing"]),
            *([] if isinstance(side, int) and side >= STEP else [f"side: {side!r}"]),
            *([] if 0.0 < strength <= 1.0 else [f"strength: {strength!r}"]),
            *[f"{name}: there is no such option" for name in settings if name not in OPTIONS],
        ]
        if problems:
            raise ConfigError(
                f"Some options cannot be used: {'; '.join(problems)}.", where="options"
            )
        self._source = PipelineSource(PipelineSettings(model=str(model), **settings))
        self._asked_mode, self._instruction, self._side = mode, instruction, side
        self._strength = float(strength)
        self._own: OwnImages | None = None

    @property
    def generator_id(self) -> str:
        asked = (self._asked_mode, self._instruction, self._side, self._strength)
        digest = "" if self._own is None else self._own.digest
        return self._source.identity("edit", *asked, digest)

    def with_images(self, own: OwnImages) -> "DiffusersEditor":
        """Return the same editor with the images of a project."""
        made = object.__new__(type(self))
        vars(made).update({**vars(self), "_own": own})
        return made

    def check_prompt(self, prompt: str) -> None:
        """Do nothing if the prompt names a class whose images are there.

        Raises:
            RefusedPromptError: if not.
        """
        self._class_of(prompt)

    def generate(self, prompts: Sequence[str], *, seeds: Sequence[int]) -> list[GeneratedImage]:
        """Return one changed image a prompt.

        Raises:
            RefusedPromptError: if a prompt names none of the classes.
            ModelError: if the pipeline cannot be loaded or fails, or no image of the class can be used.
        """
        refuse_unequal(len(seeds), prompts=len(prompts))
        return [self._edit(prompt, seed) for prompt, seed in zip(prompts, seeds, strict=True)]

    def _edit(self, prompt: str, seed: int) -> GeneratedImage:
        parent = self._parent(prompt, seed)
        (drawn,) = draw(
            self._source, self._pipeline, [seed], lambda _: self._inputs(prompt, parent)
        )
        return GeneratedImage(
            image=_kept_outside(drawn.image, parent),
            prompt=prompt,
            seed=seed,
            generator_id=self.generator_id,
            parents=(parent.sample_id,),
            verdicts=drawn.verdicts,
        )

    def _inputs(self, prompt: str, parent: Parent) -> dict[str, Any]:
        takes = arguments_of(type(self._pipeline))
        options = self._source.call_options(self._pipeline)
        width, height = parent.image.size
        sized = {"width": width, "height": height} if {"width", "height"} <= takes else {}
        if "_auto_resize" in takes:
            # FLUX.1 Kontext would enlarge every image to a million pixels.
            sized |= {"_auto_resize": False, "max_area": width * height}
        if self._mode == "redraw":
            options |= {"strength": self._strength}
            sized = {}
        if self._mode == "fill":
            options |= {"mask_image": parent.mask}
        words = (
            self._instruction.replace("{prompt}", prompt) if self._mode == "instruct" else prompt
        )
        return {"prompt": words, "image": parent.image, **sized, **options}

    def _parent(self, prompt: str, seed: int) -> Parent:
        own, class_name = self._images, self._class_of(prompt)
        ids = own.objects(class_name)
        order = generator(seed, "edited image", class_name).permutation(len(ids))
        for place in order[:MOST_TRIED]:
            image = _with_sides(own.image(ids[place]), self._side)
            if self._mode != "fill":
                return Parent(sample_id=ids[place], image=image)
            mask = self._object(ids[place], class_name)
            if mask is not None:
                return Parent(
                    sample_id=ids[place], image=image, mask=self._region(prompt, mask, image.size)
                )
        raise ModelError(
            f"None of {len(order)} images of {class_name!r} has a mask of its object, which this pipeline needs.",
            where=self._source.settings.model,
            fix="Configure [segmenter], give masks with the data, or name an editing pipeline.",
        )

    def _object(self, sample_id: str, class_name: str) -> Image.Image | None:
        """Return the mask of an object: the data set's own, or what the segmenter found and did not refuse."""
        given = self._images.mask(sample_id)
        if given is not None:
            return given
        coverage, refused = self._images.found(sample_id, class_name)
        if refused:
            return None
        return Image.fromarray(np.rint(255 * coverage).astype(np.uint8))

    def _region(self, prompt: str, mask: Image.Image, size: tuple[int, int]) -> Image.Image:
        """Return where to draw: around the object if the prompt names a place, else on it."""
        scaled = mask.convert("L").resize(size)
        is_elsewhere = any(place in prompt for place in built_in_vocabulary().places)
        return ImageChops.invert(scaled) if is_elsewhere else scaled

    def _class_of(self, prompt: str) -> str:
        own = self._images
        said = phrase_words(prompt)
        named = [
            name
            for name in own.class_names
            if covers(said, phrase_words(noun_of(name))) and own.objects(name)
        ]
        if not named:
            raise RefusedPromptError(
                "The prompt names no class whose images could be changed.",
                given=prompt,
                fix=f"Name one, for example: {plain_caption(own.class_names[0]).phrase!r}.",
            )
        return max(named, key=len)

    @property
    def _images(self) -> OwnImages:
        if self._own is None:
            raise ConfigError(
                "There are no images to change.",
                where="[generator]",
                fix="Use the generator `edit` inside a project.",
            )
        return self._own

    @cached_property
    def _mode(self) -> Mode:
        if self._asked_mode:
            return self._asked_mode  # type: ignore[return-value]
        takes = arguments_of(self._source.kind(self._source.class_name))
        if "mask_image" in takes:
            return "fill"
        return "instruct" if "image" in takes and "strength" not in takes else "fill"

    @cached_property
    def _pipeline(self) -> Any:
        source = self._source
        takes = arguments_of(source.kind(source.class_name))
        needed = {"instruct": "image", "fill": "mask_image", "redraw": "strength"}[self._mode]
        sibling = {"fill": INPAINTING, "redraw": REDRAWING}.get(self._mode, "")
        kind = "DiffusionPipeline" if needed in takes else sibling
        if not kind:
            raise ModelError(
                f"{source.class_name} takes no image to change.",
                where=source.settings.model,
                fix='Name an editing pipeline, or set mode = "fill" or "redraw".',
            )
        made = source.pipeline(kind)
        if getattr(made, "safety_checker", None) is not None:
            made.register_modules(safety_checker=None)
        return made


OPTIONS = frozenset(PipelineSettings.__dataclass_fields__) - {
    "model",
    "batch_size",
    "width",
    "height",
}


def _with_sides(image: Image.Image, side: int) -> Image.Image:
    """Return an image with its longest side as given and both sides multiples of what pipelines take."""
    factor = side / max(image.size)
    width, height = (max(STEP, round(length * factor / STEP) * STEP) for length in image.size)
    return image.convert("RGB").resize((width, height), Image.Resampling.LANCZOS)


def _kept_outside(drawn: Image.Image, parent: Parent) -> Image.Image:
    """Return what was drawn inside the mask, and the image itself outside of it."""
    if parent.mask is None:
        return drawn
    return Image.composite(drawn.resize(parent.image.size), parent.image, parent.mask)
