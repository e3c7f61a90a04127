"""A torch classifier written with another last layer: named tensors, TorchScript, or a module in memory."""

import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from weakspot.backends.head_fitting import too_large
from weakspot.backends.optional_library import require_library
from weakspot.backends.torch.device import require_torch
from weakspot.backends.torch.files import PURPOSE, WRAPPERS
from weakspot.core.arrays import AnyArray
from weakspot.core.errors import ModelError
from weakspot.core.heads import Head

SAFETENSORS = ".safetensors"
_FINEST = 1e-7


def layer_kind(tensors: Mapping[str, Any], layer: str) -> str:
    """Return the kind of number that a layer's weights are kept in, for example `float16`."""
    return str(tensors[f"{layer}.weight"].dtype).removeprefix("torch.")


def rounding(*kinds: str) -> float:
    """Return the coarsest relative rounding among kinds of number."""
    import torch

    return max(_FINEST, *(float(torch.finfo(getattr(torch, kind)).eps) for kind in kinds))


def with_layer(tensors: Mapping[str, Any], layer: str, head: Head, *, where: str) -> dict[str, Any]:
    """Return named tensors with those of one layer replaced, in the kinds of number they had; the others are the same objects.

    Raises:
        ModelError: if the layer's weights are not among them, or a bias is needed and there is none.
    """
    weight, bias = f"{layer}.weight", f"{layer}.bias"
    if weight not in tensors:
        raise ModelError(
            f"The weights of the layer {layer!r} are computed from other numbers, so they cannot be replaced.",
            where=where,
            fix="Remove the parametrization (weight norm, for example) before saving, or use repaired_head.safetensors.",
        )
    if bias not in tensors and head.bias.any():
        raise ModelError(
            f"The layer {layer!r} has no bias, and the repaired head needs one.",
            where=where,
            fix=f"Build the module with a bias in {layer!r}, or use repaired_head.safetensors.",
        )
    changed = {weight: head.weights, **({bias: head.bias} if bias in tensors else {})}
    return {
        **tensors,
        **{name: _like(values, tensors[name], where=where) for name, values in changed.items()},
    }


def fill_layer(module: Any, layer: str, head: Head, *, where: str) -> None:
    """Put a head into one layer of a module, in place.

    Raises:
        ModelError: as for `with_layer`, and if another layer shares the layer's numbers.
    """
    import torch

    refuse_shared(module, layer, where=where)
    own = dict(module.named_parameters())
    changed = with_layer(own, layer, head, where=where)
    with torch.no_grad():
        for name in (f"{layer}.weight", f"{layer}.bias"):
            if name in own:
                own[name].copy_(changed[name])


def refuse_shared(module: Any, layer: str, *, where: str) -> None:
    """Refuse to change a layer whose numbers are also those of another one.

    Raises:
        ModelError: with the names of the others.
    """
    tensors, names = (
        dict(module.named_parameters(remove_duplicate=False)),
        (f"{layer}.weight", f"{layer}.bias"),
    )
    own = {tensors[name].data_ptr() for name in names if name in tensors}
    shared = sorted(
        name
        for name, value in tensors.items()
        if name not in names and value.numel() and value.data_ptr() in own
    )
    if shared:
        raise ModelError(
            f"The last layer shares its numbers with {', '.join(shared[:3])}, which must not change.",
            where=where,
            fix="Give the layer its own weights, or use repaired_head.safetensors.",
        )


def save_tensors(path: Path, tensors: Mapping[str, Any], like: Path | None) -> Path:
    """Write named tensors as safetensors, or as a state dict that `torch.load(weights_only=True)` reads; return the path.

    Args:
        path: where to; its suffix decides.
        tensors: what to write.
        like: the file they came from, whose metadata, or the keys around its state dict, are kept.
    """
    torch = require_torch(PURPOSE)
    own = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    if path.suffix.lower() == SAFETENSORS:
        library = require_library("safetensors.torch", extra="torch", purpose=PURPOSE)
        library.save_file(own, str(path), metadata=_metadata(like))
        return path
    wrapped: Any = own
    for key in reversed(_wrappers(like)):
        wrapped = {key: wrapped}
    torch.save(wrapped, str(path))
    return path


def save_script(path: Path, script: Any, like: Path | None) -> Path:
    """Write TorchScript, with the extra files of the one it came from; return the path."""
    torch = require_torch(PURPOSE)
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message=".*torch.jit.*deprecated", category=DeprecationWarning
        )
        torch.jit.save(script, str(path), _extra_files=_extra_files(like))
    return path


def changed_tensors(before: Mapping[str, Any], after: Mapping[str, Any]) -> set[str]:
    """Return the names of tensors that are not the same bit for bit, or only on one side."""
    both = set(before) & set(after)
    return (set(before) ^ set(after)) | {
        name for name in both if not _is_same(before[name], after[name])
    }


def _is_same(one: Any, other: Any) -> bool:
    import torch

    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    first, second = (
        value.detach().cpu().contiguous().reshape(-1).view(torch.uint8) for value in (one, other)
    )
    return bool(torch.equal(first, second))


def _like(values: AnyArray, tensor: Any, *, where: str) -> Any:
    import torch

    if tuple(tensor.shape) != values.shape:
        raise ModelError(
            "The head is not of the shape of the layer.",
            where=where,
            given=(values.shape, tuple(tensor.shape)),
        )
    rounded = torch.from_numpy(np.array(values, np.float32)).to(
        dtype=tensor.dtype, device=tensor.device
    )
    if not bool(torch.isfinite(rounded).all()):
        raise too_large(values, str(tensor.dtype).removeprefix("torch."), where=where)
    return rounded


def _metadata(like: Path | None) -> dict[str, str]:
    from safetensors import safe_open

    if like is None or like.suffix.lower() != SAFETENSORS:
        return {"format": "pt"}
    with safe_open(str(like), framework="pt") as opened:
        return dict(opened.metadata() or {"format": "pt"})


def _wrappers(like: Path | None) -> list[str]:
    import torch

    if like is None or like.suffix.lower() == SAFETENSORS:
        return []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Detected pickle protocol", category=UserWarning)
        found = torch.load(str(like), map_location="cpu", weights_only=True)
    keys = []
    for key in WRAPPERS:
        if isinstance(found, Mapping) and isinstance(found.get(key), Mapping):
            found = found[key]
            keys.append(key)
    return keys


def _extra_files(like: Path | None) -> dict[str, bytes]:
    if like is None or not zipfile.is_zipfile(like):
        return {}
    with zipfile.ZipFile(like) as archive:
        inner = [
            name for name in archive.namelist() if "/extra/" in name and not name.endswith("/")
        ]
        return {name.partition("/extra/")[2]: archive.read(name) for name in inner}
