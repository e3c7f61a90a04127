"""Where torch computes and with what kind of numbers, and torchvision beside a torch without CUDA.

The torchvision wheel of the package index is built for CUDA. Beside a CPU build of torch its compiled part cannot be loaded, and
its Python part then fails on import because two operators of object detection are unknown, which takes timm, open_clip and
transformers down with it. No classifier calls those operators. Declaring their names, without any implementation, is enough for
the Python part.
"""

import importlib.util
from pathlib import Path
from threading import Lock
from typing import Any

from weakspot.core.errors import ConfigError
from weakspot.models.loading import require_library

SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
OPERATORS = ("nms", "qnms")
_lock = Lock()
_declared: list[Any] = []


def declare_torchvision_operators() -> bool:
    """Make torchvision importable if its compiled part does not fit torch; call it before importing what needs torchvision.

    Returns:
        Whether the operators had to be declared.
    """
    found = importlib.util.find_spec("torchvision")
    if found is None or found.origin is None or importlib.util.find_spec("torch") is None:
        return False
    with _lock:
        if _declared or _compiled_part_loads(Path(found.origin).parent):
            return bool(_declared)
        _declare()
    return True


def _compiled_part_loads(folder: Path) -> bool:
    import torch

    for library in sorted(folder.glob("_C*.so")) + sorted(folder.glob("_C*.pyd")):
        try:
            torch.ops.load_library(str(library))
        except (ImportError, OSError):
            return False
        return True
    return hasattr(torch.ops.torchvision, OPERATORS[0])


def _declare() -> None:
    import torch

    declared = torch.library.Library("torchvision", "FRAGMENT")
    for name in OPERATORS:
        if not hasattr(torch.ops.torchvision, name):
            declared.define(name + SIGNATURE)
    _declared.append(declared)


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
        raise ConfigError(
            f"torch cannot use the device {wanted!r}.",
            given=wanted,
            fix="Choose auto, cpu, cuda or mps.",
        ) from error
    return device


def torch_dtype(torch: Any, wanted: str) -> Any:
    if wanted not in DTYPES:
        raise ConfigError(
            "This is no kind of number that models run in.",
            given=wanted,
            fix=f"Choose one of {list(DTYPES)}.",
        )
    return getattr(torch, wanted)
