"""Pipelines of the diffusers library by name or from a folder: settings, loading, and runs that depend on prompt and seed alone."""

import inspect
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from weakspot.core.arrays import AnyArray, FloatArray
from weakspot.core.bounds import Count, NonNegative, check_bounds
from weakspot.core.errors import ConfigError, ModelError, UnavailableError
from weakspot.core.generated import PASS
from weakspot.core.registry import Sendable
from weakspot.models.loading import LoadedOnce, require_few_bits, require_library
from weakspot.models.model_hash import file_hash, model_id
from weakspot.models.torch.device import (
    DTYPES,
    declare_torchvision_operators,
    require_torch,
    torch_device,
    torch_dtype,
)
from weakspot.models.transformers.source import QUANTISED, first_line, hub_is_off

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


PURPOSE = "Diffusion pipelines"
EXTRA = "generate"
INDEX_FILE = "model_index.json"
DRAWING = ("call", "scheduler", "lora", "lora_weight", "quantise")
"""Settings that decide about pixels and that older ids do not know; they count only where they were changed."""


class PipelineSource(Sendable):
    """Loads one pipeline: safetensors only, and code that comes with a model is never run.

    Args:
        settings: which pipeline, and where it runs.
    """

    def __init__(self, settings: PipelineSettings) -> None:
        self.settings = settings

    def identity(self, kind: str, *parts: Any) -> str:
        """Return `kind:name@hash`, the hash over the weights and everything that decides the pixels."""
        chosen = self.settings
        drawing = (
            chosen.steps,
            chosen.guidance_scale,
            chosen.width,
            chosen.height,
            chosen.negative_prompt,
            chosen.variant,
        )
        own = {each.name: each.default for each in fields(chosen)}
        further = [
            f"{name}={getattr(chosen, name)}"
            for name in DRAWING
            if getattr(chosen, name) not in (own[name], {})
        ]
        return model_id(
            kind,
            self.name,
            self.version,
            str(self.dtype),
            chosen.batch_size,
            *drawing,
            *further,
            *parts,
        )

    @property
    def name(self) -> str:
        folder = Path(self.settings.model)
        return folder.name if folder.is_dir() else self.settings.model

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
    def device(self) -> Any:
        return torch_device(self.torch, self.settings.device)

    @LoadedOnce
    def dtype(self) -> Any:
        if self.settings.dtype != "auto":
            return torch_dtype(self.torch, self.settings.dtype)
        if self.device.type != "cuda":
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
            raise self._unloadable(error) from error
        if not isinstance(found, dict) or not isinstance(found.get("_class_name"), str):
            raise ModelError(
                "The pipeline runs code of its own, which is never done, or does not say what it is.",
                where=f"{self.settings.model}/{INDEX_FILE}",
                fix="Name a pipeline of a class that diffusers has.",
            )
        return found

    @LoadedOnce
    def version(self) -> str:
        folder = Path(self.settings.model)
        return file_hash(folder) if folder.is_dir() else self._index_file.parent.name

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
                where=self.settings.model,
                fix="Install a version of diffusers that fits the model and the installed transformers.",
            ) from error

    def pipeline(self, kind: str, **parts: Any) -> Any:
        """Return a pipeline on its device, loaded by a class of diffusers.

        Args:
            kind: name of the class.
            parts: parts that take the place of those of the model; None for parts that are not needed.
        """
        loader = self.kind(kind)
        options = parts | {"revision": self.settings.revision, "variant": self.settings.variant}
        options |= {"use_safetensors": True, "trust_remote_code": False}
        options[dtype_option(self.library.__version__)] = self.dtype
        options |= quantised_parts(self.library, self.settings.quantise, self.dtype)
        with self.quiet():
            made = self._fetch(partial(loader.from_pretrained, self.settings.model, **options))
            if self.settings.scheduler:
                with_scheduler(self.library, made, self.settings.scheduler)
            if self.settings.lora:
                with_lora(made, self.settings.lora, self.settings.lora_weight)
            made = placed(made, self.device, self.settings.offload)
        made.set_progress_bar_config(disable=True)
        if hasattr(getattr(made, "vae", None), "enable_slicing"):
            made.vae.enable_slicing()
        return made

    def part(self, model: str) -> Any:
        """Return a part that is kept apart from the pipeline, such as a ControlNet, by name on the hub or folder."""
        other = PipelineSource(replace(self.settings, model=model, revision=None, variant=None))
        options: dict[str, Any] = {"use_safetensors": True, "trust_remote_code": False}
        options[dtype_option(self.library.__version__)] = self.dtype
        with self.quiet():
            return other._fetch(partial(self.kind("AutoModel").from_pretrained, model, **options))

    def call_options(self, pipeline: Any) -> dict[str, Any]:
        """Return the settings that are not left to the pipeline, by the names of its arguments.

        Raises:
            ConfigError: if the pipeline does not take one of them.
        """
        chosen = self.settings
        wanted = {
            "num_inference_steps": chosen.steps,
            "guidance_scale": chosen.guidance_scale,
            "width": chosen.width,
            "height": chosen.height,
            "negative_prompt": chosen.negative_prompt or None,
        }
        given = {name: value for name, value in wanted.items() if value is not None}
        given |= chosen.call
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
    def running(self, seed: int) -> Iterator[None]:
        """Run a pipeline without gradients and without moving torch's random state; what goes wrong becomes a ModelError.

        Args:
            seed: of whatever a scheduler draws past the generators that it is given.
        """
        torch = self.torch
        try:
            with (
                torch.inference_mode(),
                torch.random.fork_rng(devices=range(torch.cuda.device_count())),
                self.quiet(),
            ):
                torch.manual_seed(seed)
                yield
        except torch.OutOfMemoryError as error:
            fix = "Set a smaller batch_size, width and height, or dtype."
            raise ModelError(
                "The images do not fit into memory.", where=self.settings.model, fix=fix
            ) from error
        except (RuntimeError, ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
            raise ModelError(
                f"The pipeline cannot draw: {first_line(error)}", where=self.settings.model
            ) from error

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Keep progress bars, log lines and warnings of the libraries off the screen: they are about nothing the user did."""
        import transformers

        switches = [self.library.utils.logging, transformers.utils.logging]
        before = [(switch.get_verbosity(), switch.is_progress_bar_enabled()) for switch in switches]
        for switch in switches:
            switch.set_verbosity_error()
            switch.disable_progress_bar()
        try:
            with _no_warnings():
                yield
        finally:
            for switch, (level, was_on) in zip(switches, before, strict=True):
                switch.set_verbosity(level)
                if was_on:
                    switch.enable_progress_bar()

    @LoadedOnce
    def _index_file(self) -> Path:
        folder = Path(self.settings.model)
        if folder.is_dir():
            if not (folder / INDEX_FILE).is_file():
                raise ModelError(
                    f"There is no {INDEX_FILE} in the folder.",
                    where=str(folder),
                    fix="Give a folder that save_pretrained wrote.",
                )
            return folder / INDEX_FILE
        hub = require_library("huggingface_hub", extra=EXTRA, purpose=PURPOSE)
        found = self._fetch(
            partial(
                hub.hf_hub_download,
                self.settings.model,
                INDEX_FILE,
                revision=self.settings.revision,
            )
        )
        return Path(found)

    def _fetch(self, fetch: Callable[..., Any]) -> Any:
        """Load from the folder or the hub's cache, and from the hub itself only if that is not enough and allowed."""
        try:
            return fetch(local_files_only=True)
        except (
            Exception
        ) as error:  # a damaged file or a cache that holds a part of the model can raise anything
            if Path(self.settings.model).is_dir():
                raise self._unloadable(error) from error
            if hub_is_off() is not None:
                raise self._unavailable(f"the hub is off ({hub_is_off()})") from error
        try:
            return fetch(local_files_only=False)
        except OSError as error:
            raise self._unavailable(first_line(error)) from error
        except Exception as error:
            raise self._unloadable(error) from error

    def _unloadable(self, error: Exception) -> ModelError:
        return ModelError(
            f"diffusers cannot load the pipeline: {first_line(error)}",
            where=self.settings.model,
            fix="Weights must be safetensors, in the layout that save_pretrained writes.",
        )

    def _unavailable(self, reason: str) -> UnavailableError:
        return UnavailableError(
            f"The pipeline is not in the hub's cache and cannot be fetched: {reason}",
            where=self.settings.model,
            fix="Check the name and the network, or give the folder of a copy.",
        )


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
