"""Where torch computes and with what kind of numbers."""

from typing import Any

from weakspot.backends.optional_library import require_library
from weakspot.core.errors import ConfigError

DTYPES = ("float32", "float16", "bfloat16")


def require_torch(purpose: str) -> Any:
    """Return torch.

    Raises:
        MissingExtraError: if it is not installed.
    """
    return require_library("torch", extra="torch", purpose=purpose)


def torch_device(torch: Any, wanted: str) -> Any:
    """Return a device; `auto` is the first of cuda, mps and cpu that is there."""
    if wanted == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(wanted)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ConfigError(f"torch cannot use the device {wanted!r}.", given=wanted, fix="Choose auto, cpu, cuda or mps.") from error
    return device


def torch_dtype(torch: Any, wanted: str) -> Any:
    """Return a kind of floating-point number by name."""
    if wanted not in DTYPES:
        raise ConfigError("This is no kind of number that models run in.", given=wanted, fix=f"Choose one of {list(DTYPES)}.")
    return getattr(torch, wanted)
