"""A user's own images changed as words say, by diffusion pipelines that edit, fill in or follow images."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from PIL import Image

from weakspot.core.bounds import PositiveFraction
from weakspot.core.errors import ModelError
from weakspot.core.roles import GeneratedImage
from weakspot.models.diffusers.pipeline import (
    RetunedPipeline,
    arguments_of,
    refuse_unequal,
)
from weakspot.models.edited_images import INSTRUCTION, EditsOwnImages, Parent, editing_problems
from weakspot.models.model_hash import file_hash

Mode = Literal["instruct", "fill", "redraw", "control"]
MODES = get_args(Mode)
CONTROLS = ("canny", "image")
SIBLINGS = {
    "fill": "AutoPipelineForInpainting",
    "redraw": "AutoPipelineForImage2Image",
    "control": "AutoPipelineForText2Image",
}
CONTROLLED = frozenset({"control_image", "controlnet_conditioning_scale"})
SIDE = 512
EDGES = (100, 200)
"""Below the first a step in a colour is no edge, above the second it is one, in between if it goes on from one."""
OTHER_TASKS = ("Upscale", "SuperResolution", "Video", "Variation", "Marigold", "Layered")


@dataclass(kw_only=True, eq=False)
class DiffusersEditor(EditsOwnImages, RetunedPipeline):
    """Changes images of the class that a prompt names so that they show what the prompt says, and keeps the rest.

    What the pipeline takes decides how. *Editing* pipelines (InstructPix2Pix, FLUX.1 Kontext, FLUX.2, Qwen-Image-Edit) get the image
    and an instruction. Pipelines with a *mask* (inpainting and fill kinds of Stable Diffusion, SDXL, FLUX and Qwen-Image) draw anew
    the background where the prompt names a place, and otherwise the object; what lies outside of the mask is that of the image,
    pixel by pixel. Pipelines with a *ControlNet* get the outlines of the image and draw along them. A text-to-image pipeline is
    loaded as its inpainting sibling, or with `mode = "redraw"` as the one that starts from a noisy copy of the image.

    The same class and seed take the same image, whatever else the prompt says, so prompts that differ make pairs.

    Args:
        mode: instruct, fill, redraw or control; empty for what the pipeline is made for.
        instruction: what editing pipelines are told; `{prompt}` stands for the prompt.
        side: longest side of the images in pixels, rounded to what pipelines take.
        strength: how much of an image is drawn in mode redraw, 0 to 1.
        controlnet: name on the hub or folder of a ControlNet that fits the pipeline; empty if the pipeline has one or needs none.
        control: what a ControlNet is shown: canny for the outlines of the image, image for the image itself.
    """

    mode: str = ""
    instruction: str = INSTRUCTION
    side: int = SIDE
    strength: PositiveFraction = 0.6
    controlnet: str = ""
    control: str = "canny"

    def __post_init__(self) -> None:
        self.controlnet = str(self.controlnet)
        super().__post_init__()

    def _problems(self) -> list[str]:
        choices = (("mode", ("", *MODES)), ("control", CONTROLS))
        return [
            *super()._problems(),
            *(
                f"{name}: {getattr(self, name)!r} (known: {', '.join(filter(None, known))})"
                for name, known in choices
                if getattr(self, name) not in known
            ),
            *editing_problems(self.instruction, self.side),
        ]

    @property
    def generator_id(self) -> str:
        asked = (self.mode, self.instruction, self.side, float(self.strength))
        digest = "" if self._own is None else self._own.digest
        folder = Path(self.controlnet)
        named = (
            file_hash(folder) if self.controlnet and folder.is_dir() else self.controlnet,
            self.control,
        )
        controlled = () if named == ("", CONTROLS[0]) else named
        return self.identity("edit", *asked, digest, *controlled)

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
        (drawn,) = self.draw(self._pipeline, [seed], lambda _: self._inputs(prompt, parent))
        return GeneratedImage(
            image=parent.kept_outside(drawn.image),
            prompt=prompt,
            seed=seed,
            generator_id=self.generator_id,
            parents=(parent.sample_id,),
            verdicts=drawn.verdicts,
        )

    def _inputs(self, prompt: str, parent: Parent) -> dict[str, Any]:
        takes = arguments_of(type(self._pipeline))
        options = self.call_options(self._pipeline)
        width, height = parent.image.size
        sized = {"width": width, "height": height} if {"width", "height"} <= takes else {}
        if "_auto_resize" in takes:
            # FLUX.1 Kontext would enlarge every image to a million pixels.
            sized |= {"_auto_resize": False, "max_area": width * height}
        if self._mode == "redraw":
            options |= {"strength": self.strength}
            sized = {}
        if self._mode == "fill":
            options |= {"mask_image": parent.mask}
        words = self.instruction.replace("{prompt}", prompt) if self._mode == "instruct" else prompt
        return {"prompt": words, **self._shown(parent, takes), **sized, **options}

    def _shown(self, parent: Parent, takes: frozenset[str]) -> dict[str, Image.Image]:
        """Return the images that the pipeline is given, by the names of its arguments."""
        shown = {"image": parent.image} if "image" in takes else {}
        if CONTROLLED & takes:
            outlines = parent.image if self.control == "image" else _outlines(parent.image)
            shown["control_image" if "control_image" in takes else "image"] = outlines
        return shown

    @property
    def _takes_masks(self) -> bool:
        return self._mode == "fill"

    @property
    def _model_name(self) -> str:
        return self.model

    @cached_property
    def _mode(self) -> Mode:
        takes = self._arguments
        if self.mode:
            return self.mode  # type: ignore[return-value]
        if "mask_image" in takes:
            return "fill"
        if self.controlnet or CONTROLLED & takes:
            return "control"
        return "instruct" if "image" in takes and "strength" not in takes else "fill"

    @cached_property
    def _arguments(self) -> frozenset[str]:
        found = arguments_of(self.kind(self.class_name))
        if "prompt" not in found or any(task in self.class_name for task in OTHER_TASKS):
            raise self._no_editor("does another thing than changing an image as words say")
        return found

    @cached_property
    def _pipeline(self) -> Any:
        takes = self._arguments
        needed = {
            "instruct": "image" in takes and "strength" not in takes,
            "fill": "mask_image" in takes,
            "redraw": "strength" in takes,
            "control": bool(CONTROLLED & takes),
        }[self._mode]
        is_ready = needed and not self.controlnet
        kind = "DiffusionPipeline" if is_ready else SIBLINGS.get(self._mode, "")
        if not kind or (self._mode == "control" and not is_ready and not self.controlnet):
            raise self._no_editor(
                "takes no image to change"
                if self._mode == "instruct"
                else "has no ControlNet, and none is named"
            )
        parts = {"controlnet": self.part(self.controlnet)} if self.controlnet else {}
        made = self._loaded(kind, parts)
        if getattr(made, "safety_checker", None) is not None:
            made.register_modules(safety_checker=None)
        return made

    def _loaded(self, kind: str, parts: dict[str, Any]) -> Any:
        try:
            return self.pipeline(kind, **parts)
        except ModelError as error:
            if "AutoPipeline can't find" not in str(error):
                raise
            raise self._no_editor(f"has no sibling for the mode {self._mode!r}") from error

    def _no_editor(self, why: str) -> ModelError:
        return ModelError(
            f"{self.class_name} {why}.",
            where=self.model,
            fix="Name an editing pipeline (Qwen-Image-Edit, FLUX.1 Kontext, FLUX.2, InstructPix2Pix), one that fills in "
            'or that has siblings (Stable Diffusion, SDXL, FLUX; mode = "fill" or "redraw"), or a ControlNet (controlnet).',
        )


def _outlines(image: Image.Image) -> Image.Image:
    """Return the edges of an image in white on black; of its colours, since two colours may be equally bright."""
    import cv2

    return Image.fromarray(cv2.Canny(np.asarray(image), *EDGES)).convert("RGB")
