"""How the parts of a pipeline are loaded and placed: kind of numbers, quantised weights, scheduler, LoRA, offloading."""

from typing import Any

from weakspot.backends.optional_library import require_few_bits
from weakspot.backends.transformers.source import QUANTISED
from weakspot.core.errors import ConfigError, ModelError

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
