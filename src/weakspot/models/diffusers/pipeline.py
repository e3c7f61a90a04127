"""Pipelines of the diffusers library by name or from a folder: settings, loading, and runs that depend on prompt and seed alone."""

import inspect
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray, FloatArray
from weakspot.core.bounds import Count, NonNegative
from weakspot.core.errors import ConfigError, ModelError
from weakspot.core.generated import PASS
from weakspot.core.roles import GeneratedImage
from weakspot.models.loading import (
    LoadedOnce,
    file_hash,
    first_line,
    model_id,
    require_few_bits,
    require_library,
)
from weakspot.models.torch.runtime import (
    DTYPES,
    declare_torchvision_operators,
    require_torch,
    torch_device,
    torch_dtype,
)
from weakspot.models.transformers.source import QUANTISED, HubModel

OFFLOADS = ("model", "sequential")
FIRST_DTYPE = (0, 40)
LARGE_PARTS = ("transformer", "unet", "text_encoder", "text_encoder_2", "text_encoder_3")


def dtype_option(version: str) -> str:
    """Return what the kind of numbers is called by a version of diffusers; one that does not know the name ignores it silently.

    >>> dtype_option("0.31.0"), dtype_option("0.40.0.dev0"), dtype_option("1.0.0")
    ('torch_dtype', 'dtype', 'dtype')
    """
    known = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    return "dtype" if known >= FIRST_DTYPE else "torch_dtype"


def quantised_parts(library: Any, quantise: str, dtype: Any) -> dict[str, Any]:
    """Return what makes diffusers load the large parts in few bits; nothing if that is not wanted.

    Raises:
        UnavailableError: if what does it is not installed.
    """
    if not quantise:
        return {}
    require_few_bits()
    compute = {"bnb_4bit_compute_dtype": dtype} if quantise == "4-bit" else {}
    config = library.PipelineQuantizationConfig(
        quant_backend=f"bitsandbytes_{quantise.replace('-', '')}",
        quant_kwargs={QUANTISED[quantise]: True, **compute},
        components_to_quantize=list(LARGE_PARTS),
    )
    return {"quantization_config": config}


def with_scheduler(library: Any, pipeline: Any, name: str) -> None:
    """Give a pipeline another scheduler, made from the configuration of its own.

    Raises:
        ConfigError: if diffusers has no such scheduler.
    """
    kind = getattr(library, name, None)
    if kind is None or not hasattr(kind, "set_timesteps"):
        raise ConfigError(
            f"diffusers has no scheduler {name!r}.",
            where="scheduler",
            given=name,
            fix="Give the name of its class, such as EulerDiscreteScheduler.",
        )
    pipeline.scheduler = kind.from_config(pipeline.scheduler.config)


def with_lora(pipeline: Any, name: str, weight: float) -> None:
    """Add the changed weights of a LoRA, by name on the hub, folder or file.

    Raises:
        ModelError: if they do not fit the pipeline.
    """
    if not hasattr(pipeline, "load_lora_weights"):
        raise ModelError(f"{type(pipeline).__name__} takes no LoRA.", where="lora", given=name)
    try:
        pipeline.load_lora_weights(name, adapter_name="chosen", use_safetensors=True)
        pipeline.set_adapters(["chosen"], [weight])
    except (
        Exception
    ) as error:  # a file that is not there or fits another pipeline can raise anything
        raise ModelError(
            f"The LoRA cannot be loaded: {str(error).splitlines()[0][:200]}",
            where="lora",
            given=name,
            fix="Give safetensors that were trained for this pipeline; the library 'peft' must be installed.",
        ) from error


def placed(pipeline: Any, device: Any, offload: str) -> Any:
    """Return the pipeline where it runs: on a device, or in memory with each part moved there when its turn comes."""
    if offload and device.type != "cpu":
        move = {
            "model": "enable_model_cpu_offload",
            "sequential": "enable_sequential_cpu_offload",
        }[offload]
        getattr(pipeline, move)(device=device)
        return pipeline
    return pipeline.to(device)


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


EXTRA = "generate"
PURPOSE = "Diffusion pipelines"
INDEX_FILE = "model_index.json"
RETUNING = ("call", "scheduler", "lora", "lora_weight", "quantise")
"""Options that decide about pixels and that older ids do not know; they count only where they were changed."""
NOT_TAKEN: Mapping[str, Any] = {
    "width": None,
    "height": None,
    "batch_size": 1,
    "negative_prompt": "",
    "call": {},
    "scheduler": "",
    "lora": "",
    "lora_weight": 1.0,
    "offload": "",
    "quantise": "",
}
"""What stands for an option where a kind of part has none."""


@dataclass(kw_only=True, eq=False)
class PipelineModel(HubModel):
    """A pipeline of the diffusers library: safetensors only, and code that comes with a model is never run.

    Args:
        dtype: auto, float32, float16 or bfloat16. On a graphics card auto is bfloat16 for pipelines built on a transformer (FLUX,
            Stable Diffusion 3) and float16 for the others; elsewhere it is float32.
        variant: kind of weight files, for example fp16; None for the plain ones.
        steps: denoising steps; None for what the pipeline does by itself.
        guidance_scale: how closely words or embeddings are followed; None for what the pipeline does by itself, 0 for turbo kinds.
    """

    dtype: str = "auto"
    variant: str | None = None
    steps: Count | None = None
    guidance_scale: NonNegative | None = None

    loaded_by: ClassVar[str] = "diffusers"
    kind_of_model: ClassVar[str] = "pipeline"
    cannot_run: ClassVar[str] = "The pipeline cannot draw"
    fix_of_files: ClassVar[str | None] = (
        "Weights must be safetensors, in the layout that save_pretrained writes."
    )

    def _problems(self) -> list[str]:
        problems = super()._problems()
        if (self._option("width") is None) != (self._option("height") is None):
            problems.append(
                "width and height: give both or none, some pipelines ignore one without the other"
            )
        if self.dtype not in ("auto", *DTYPES):
            problems.append(f"dtype: must be auto or one of {list(DTYPES)}, is {self.dtype!r}")
        return problems

    def _option(self, name: str) -> Any:
        return getattr(self, name, NOT_TAKEN[name])

    def identity(self, kind: str, *parts: Any) -> str:
        """Return `kind:name@hash`, the hash over the weights and everything that decides the pixels."""
        retuned = ((name, self._option(name)) for name in RETUNING)
        return model_id(
            kind,
            self.name,
            self.version,
            str(self.numbers),
            self._option("batch_size"),
            self.steps,
            self.guidance_scale,
            self._option("width"),
            self._option("height"),
            self._option("negative_prompt"),
            self.variant,
            *(f"{name}={value}" for name, value in retuned if value != NOT_TAKEN[name]),
            *parts,
        )

    @LoadedOnce
    def torch(self) -> Any:
        return require_library("torch", extra=EXTRA, purpose=PURPOSE)

    @LoadedOnce
    def library(self) -> Any:
        require_torch(PURPOSE)
        declare_torchvision_operators()
        with _no_warnings():
            require_library("transformers", extra=EXTRA, purpose=PURPOSE)
            return require_library("diffusers", extra=EXTRA, purpose=PURPOSE)

    @LoadedOnce
    def place(self) -> Any:
        """The device of torch."""
        return torch_device(self.torch, self.device)

    @LoadedOnce
    def numbers(self) -> Any:
        """The kind of number of torch."""
        if self.dtype != "auto":
            return torch_dtype(self.torch, self.dtype)
        if self.place.type != "cuda":
            return self.torch.float32
        return self.torch.bfloat16 if "transformer" in self.index else self.torch.float16

    @property
    def class_name(self) -> str:
        return str(self.index["_class_name"])

    @LoadedOnce
    def index(self) -> Mapping[str, Any]:
        """Return what the pipeline says of its parts.

        Raises:
            ModelError: if it is no pipeline, or brings code of its own.
        """
        try:
            found = json.loads(self._index_file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise self.unloadable(error) from error
        if not isinstance(found, dict) or not isinstance(found.get("_class_name"), str):
            raise ModelError(
                "The pipeline runs code of its own, which is never done, or does not say what it is.",
                where=f"{self.model}/{INDEX_FILE}",
                fix="Name a pipeline of a class that diffusers has.",
            )
        return found

    @LoadedOnce
    def version(self) -> str:
        return file_hash(Path(self.model)) if self.is_folder else self._index_file.parent.name

    def kind(self, name: str) -> Any:
        """Return a class of diffusers.

        Raises:
            ModelError: if it has no such class, or cannot import it.
        """
        try:
            with self.quiet():
                return getattr(self.library, name)
        except (AttributeError, ImportError, RuntimeError) as error:
            raise ModelError(
                f"diffusers {self.library.__version__} cannot give its class {name}: {first_line(error)}",
                where=self.model,
                fix="Install a version of diffusers that fits the model and the installed transformers.",
            ) from error

    def pipeline(self, kind: str, **parts: Any) -> Any:
        """Return a pipeline on its device, loaded by a class of diffusers.

        Args:
            kind: name of the class.
            parts: parts that take the place of those of the model; None for parts that are not needed.
        """
        options = parts | {"revision": self.revision, "variant": self.variant} | self._safely()
        options |= quantised_parts(self.library, self._option("quantise"), self.numbers)
        scheduler, lora = self._option("scheduler"), self._option("lora")
        with self.quiet():
            made = self.fetched(partial(self.kind(kind).from_pretrained, self.model, **options))
            if scheduler:
                with_scheduler(self.library, made, scheduler)
            if lora:
                with_lora(made, lora, self._option("lora_weight"))
            made = placed(made, self.place, self._option("offload"))
        made.set_progress_bar_config(disable=True)
        if hasattr(getattr(made, "vae", None), "enable_slicing"):
            made.vae.enable_slicing()
        return made

    def part(self, model: str) -> Any:
        """Return a part that is kept apart from the pipeline, such as a ControlNet, by name on the hub or folder."""
        other = HubModel(model=model)
        loader = self.kind("AutoModel")
        with self.quiet():
            return other.fetched(partial(loader.from_pretrained, other.model, **self._safely()))

    def _safely(self) -> dict[str, Any]:
        numbers = {dtype_option(self.library.__version__): self.numbers}
        return {"use_safetensors": True, "trust_remote_code": False, **numbers}

    def call_options(self, pipeline: Any) -> dict[str, Any]:
        """Return the settings that are not left to the pipeline, by the names of its arguments.

        Raises:
            ConfigError: if the pipeline does not take one of them.
        """
        wanted = {
            "num_inference_steps": self.steps,
            "guidance_scale": self.guidance_scale,
            "width": self._option("width"),
            "height": self._option("height"),
            "negative_prompt": self._option("negative_prompt") or None,
        }
        given = {name: value for name, value in wanted.items() if value is not None}
        given |= self._option("call")
        unknown = sorted(given.keys() - arguments_of(type(pipeline)))
        if unknown:
            raise ConfigError(
                f"{type(pipeline).__name__} takes no {', '.join(unknown)}.",
                where="options",
                given=unknown,
            )
        true_scale = inspect.signature(pipeline.__call__).parameters.get("true_cfg_scale")
        if "negative_prompt" in given and true_scale is not None:
            scale = given.get("true_cfg_scale", true_scale.default)
            if scale is None or scale <= 1:
                raise ConfigError(
                    f"{type(pipeline).__name__} ignores negative_prompt while true_cfg_scale is {scale}.",
                    where="options",
                    fix="Set call = {true_cfg_scale = 4.0}, which doubles the time, or leave out negative_prompt.",
                )
        return given

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Keep warnings of the libraries off the screen, too: they are about nothing the user did."""
        with super().quiet(), _no_warnings():
            yield

    @property
    def _noisy(self) -> tuple[Any, ...]:
        import transformers

        return (self.library, transformers)

    @LoadedOnce
    def _index_file(self) -> Path:
        folder = Path(self.model)
        if self.is_folder:
            if not (folder / INDEX_FILE).is_file():
                raise ModelError(
                    f"There is no {INDEX_FILE} in the folder.",
                    where=str(folder),
                    fix="Give a folder that save_pretrained wrote.",
                )
            return folder / INDEX_FILE
        hub = require_library("huggingface_hub", extra=EXTRA, purpose=PURPOSE)
        download = partial(hub.hf_hub_download, self.model, INDEX_FILE, revision=self.revision)
        return Path(self.fetched(download))

    def draw(
        self,
        pipeline: Any,
        seeds: Sequence[int],
        inputs: Callable[[Sequence[int]], dict[str, Any]],
    ) -> list["GeneratedPixels"]:
        """Return one image a seed.

        Each image has a random generator of its own, on the processor whatever the device. With one image a call nothing else can
        decide about it. With several, libraries choose how to add up by the number of images, and the rounding follows. So every
        call has the same number: the last image is repeated where some are missing, and the copies are thrown away. What is left
        is that threads may share a batch by place, which changes the last bits of a sum.

        Args:
            pipeline: what is called.
            seeds: one an image.
            inputs: arguments of the call for images by number.

        Raises:
            ModelError: if the pipeline fails.
        """
        # A scheduler with a noise sampler draws for the whole batch at once, from one seed.
        is_single = hasattr(getattr(pipeline, "scheduler", None), "noise_sampler")
        size = 1 if is_single else self._option("batch_size")
        drawn: list[GeneratedPixels] = []
        for start in range(0, len(seeds), size):
            wanted = list(range(start, min(start + size, len(seeds))))
            filled = wanted + [wanted[-1]] * (size - len(wanted))
            with self.running(seeds[start] % _SEEDS):
                generators = [
                    self.torch.Generator(device="cpu").manual_seed(seeds[row] % _SEEDS)
                    for row in filled
                ]
                output = pipeline(**inputs(filled), generator=generators, output_type="np")
            drawn += self._pixels(output, len(filled))[: len(wanted)]
        return drawn

    def images_of(
        self,
        drawn: Sequence["GeneratedPixels"],
        prompts: Sequence[str],
        seeds: Sequence[int],
        generator_id: str,
    ) -> list[GeneratedImage]:
        return [
            GeneratedImage(
                image=one.image,
                prompt=prompt,
                seed=seed,
                generator_id=generator_id,
                verdicts=one.verdicts,
            )
            for one, prompt, seed in zip(drawn, prompts, seeds, strict=True)
        ]

    def _pixels(self, output: Any, n_images: int) -> list["GeneratedPixels"]:
        images = list(output.images)
        if len(images) != n_images:
            raise ModelError(
                f"The pipeline gave {len(images)} images where {n_images} are due.",
                where=self.model,
            )
        flags = getattr(output, "nsfw_content_detected", None) or [None] * n_images
        return [
            GeneratedPixels(
                values=_three_channels(image, where=self.model),
                is_blackened=None if flag is None else bool(flag),
            )
            for image, flag in zip(images, flags, strict=True)
        ]


@dataclass(kw_only=True, eq=False)
class RetunedPipeline(PipelineModel):
    """A pipeline that reads words, and whose parts may be changed.

    Args:
        negative_prompt: what images are not to show.
        call: further arguments of the pipeline's call, by their own names, such as true_cfg_scale or image_guidance_scale.
        scheduler: class of diffusers that takes the place of the pipeline's own scheduler.
        lora: name on the hub, folder or file of a LoRA.
        lora_weight: how much of it.
        offload: model or sequential: parts wait in memory and go to the device in turn; empty to keep all of it there.
        quantise: 4-bit or 8-bit to load the large parts so by bitsandbytes.
    """

    negative_prompt: str = ""
    call: Mapping[str, Any] = field(default_factory=dict)
    scheduler: str = ""
    lora: str = ""
    lora_weight: NonNegative = 1.0
    offload: str = ""
    quantise: str = ""

    def __post_init__(self) -> None:
        self.call, self.lora = self.call or {}, str(self.lora)
        super().__post_init__()

    def _problems(self) -> list[str]:
        problems = super()._problems()
        taken = sorted(OWN_ARGUMENTS & self.call.keys())
        if taken:
            problems.append(f"call: {', '.join(taken)} cannot be set here")
        for name, known in (("offload", OFFLOADS), ("quantise", tuple(QUANTISED))):
            if getattr(self, name) not in ("", *known):
                problems.append(f"{name}: must be one of {list(known)}, is {getattr(self, name)!r}")
        return problems


def arguments_of(kind: type[Any]) -> frozenset[str]:
    return frozenset(inspect.signature(kind.__call__).parameters)


@contextmanager
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


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


def _three_channels(image: AnyArray, *, where: str) -> FloatArray:
    values = np.asarray(image, dtype=np.float32)
    if values.ndim != _WITH_CHANNELS or values.shape[2] not in (_GREY, _COLOUR) or not values.size:
        raise ModelError(
            "The pipeline gives no images with three colours.",
            where=where,
            given=values.shape,
        )
    return np.repeat(values, _COLOUR, axis=2) if values.shape[2] == _GREY else values
