"""Which diffusion pipeline, where it runs and how it draws."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from weakspot.backends.diffusers.loading import OFFLOADS
from weakspot.backends.torch.device import DTYPES
from weakspot.backends.transformers.source import QUANTISED
from weakspot.core.bounds import Count, NonNegative, check_bounds

OWN_ARGUMENTS = frozenset(
    {
        "prompt",
        "image",
        "mask_image",
        "generator",
        "output_type",
        "num_inference_steps",
        "guidance_scale",
    }
    | {"width", "height", "negative_prompt", "num_images_per_prompt", "return_dict"}
)


@dataclass(frozen=True, kw_only=True)
class PipelineSettings:
    """Which pipeline, where it runs and how it draws.

    Args:
        model: name on the hub, or a folder that `save_pretrained` wrote; with a folder nothing is asked of any network.
        revision: branch, tag or commit on the hub.
        variant: kind of weight files, for example fp16; None for the plain ones.
        device: auto, cpu, cuda, cuda:1, mps.
        dtype: auto, float32, float16 or bfloat16. On a graphics card auto is bfloat16 for pipelines built on a transformer (FLUX,
            Stable Diffusion 3) and float16 for the others; elsewhere it is float32.
        steps: denoising steps; None for what the pipeline does by itself.
        guidance_scale: how closely words are followed; None for what the pipeline does by itself, 0 for none.
        width: of the images in pixels; None for what the pipeline does by itself.
        height: of the images in pixels; None for what the pipeline does by itself.
        negative_prompt: what images are not to show.
        batch_size: images a call of the pipeline.
        call: further arguments of the pipeline's call, by their own names, such as true_cfg_scale or image_guidance_scale.
        scheduler: class of diffusers that takes the place of the pipeline's own scheduler.
        lora: name on the hub, folder or file of a LoRA.
        lora_weight: how much of it.
        offload: model or sequential: parts wait in memory and go to the device in turn; empty to keep all of it there.
        quantise: 4-bit or 8-bit to load the large parts so by bitsandbytes.
    """

    model: str
    revision: str | None = None
    variant: str | None = None
    device: str = "auto"
    dtype: str = "auto"
    steps: Count | None = None
    guidance_scale: NonNegative | None = None
    width: Count | None = None
    height: Count | None = None
    negative_prompt: str = ""
    batch_size: Count = 1
    call: Mapping[str, Any] = field(default_factory=dict)
    scheduler: str = ""
    lora: str = ""
    lora_weight: NonNegative = 1.0
    offload: str = ""
    quantise: str = ""

    def __post_init__(self) -> None:
        problems = []
        taken = sorted(OWN_ARGUMENTS & self.call.keys())
        if taken:
            problems.append(f"call: {', '.join(taken)} cannot be set here")
        for name, known in (("offload", OFFLOADS), ("quantise", tuple(QUANTISED))):
            if getattr(self, name) not in ("", *known):
                problems.append(f"{name}: must be one of {list(known)}, is {getattr(self, name)!r}")
        if (self.width is None) != (self.height is None):
            problems.append(
                "width and height: give both or none, some pipelines ignore one without the other"
            )
        if self.dtype not in ("auto", *DTYPES):
            problems.append(f"dtype: must be auto or one of {list(DTYPES)}, is {self.dtype!r}")
        if not self.model.strip():
            problems.append("model: must be a name on the hub or a folder")
        check_bounds(self, where="options", problems=problems)
