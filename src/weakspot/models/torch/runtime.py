"""What all models of torch share: where torch computes, with what kind of numbers, and how files of weights are opened.

The torchvision wheel of the package index is built for CUDA. Beside a CPU build of torch its compiled part cannot be loaded, and
its Python part then fails on import because two operators of object detection are unknown, which takes timm, open_clip and
transformers down with it. No classifier calls those operators. Declaring their names, without any implementation, is enough for
the Python part.
"""

import importlib.util
import pickle
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from weakspot.core.arrays import AnyArray
from weakspot.core.errors import ConfigError, ModelError
from weakspot.core.heads import Head
from weakspot.models.class_scores import too_large
from weakspot.models.loading import load_object, require_library

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


PURPOSE = "Torch classifiers"
PICKLE_SUFFIXES = frozenset({".pkl", ".pickle", ".joblib"})
WRAPPERS = ("state_dict", "model", "model_state_dict")
AS_SAFETENSORS = (
    "Save the numbers alone with safetensors.torch.save_file(model.state_dict(), 'model.safetensors') and set "
    "factory = 'package.module:function' that builds the module; or export to ONNX."
)
_N_SHOWN = 5


def load_module(
    path: Path,
    *,
    factory: str | None,
    arguments: Mapping[str, Any] | None,
    folder: str | Path | None,
) -> Any:
    """Load a TorchScript file, or build a module and fill it with a file of weights.

    Args:
        path: TorchScript; or .safetensors, or a plain state dict in .pt or .pth.
        factory: import string of what builds the module; weights alone need it.
        arguments: keyword arguments of the factory.
        folder: where to look for the factory's module first.
    """
    if not path.is_file():
        raise ModelError("There is no such model file.", where=str(path), fix="Correct the path.")
    if path.suffix.lower() in PICKLE_SUFFIXES:
        raise _refused(path)
    if is_script(path):
        return load_script(path)
    if factory is None:
        if path.suffix.lower() != SAFETENSORS:
            raise _refused(path)
        raise ConfigError(
            "A safetensors file holds weights only.",
            where=str(path),
            fix="Set factory = 'package.module:function' that builds the module.",
        )
    module = _built(factory, arguments, folder)
    fill(module, load_state(path), where=str(path))
    return module


def is_script(path: Path) -> bool:
    """Return whether a file is TorchScript: an archive that holds code of its own beside the weights."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any(name.endswith("/constants.pkl") for name in archive.namelist())


@contextmanager
def quiet_scripts() -> Iterator[None]:
    """Leave out that torch.jit is deprecated: users' files are what they are."""
    with warnings.catch_warnings():
        message = ".*torch.jit.*deprecated"
        warnings.filterwarnings("ignore", message=message, category=DeprecationWarning)
        yield


def load_script(source: Any) -> Any:
    torch = require_torch(PURPOSE)
    with quiet_scripts():
        try:
            return torch.jit.load(
                str(source) if isinstance(source, Path) else source, map_location="cpu"
            )
        except (RuntimeError, ValueError) as error:
            raise ModelError(
                "torch cannot read this TorchScript file.",
                where=str(source),
                fix="Export it again.",
            ) from error


def load_state(path: Path) -> dict[str, Any]:
    """Return the named tensors of a .safetensors file, or of a plain state dict that was saved with torch.save."""
    if path.suffix.lower() == ".safetensors":
        library = require_library("safetensors.torch", extra="torch", purpose=PURPOSE)
        try:
            return dict(library.load_file(str(path)))
        except Exception as error:
            raise ModelError(
                "This is no safetensors file, or it is cut short.",
                where=str(path),
                fix="Save it again.",
            ) from error
    try:
        found = _stored(path)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
        raise _refused(path) from error
    return _plain_state(found, path)


def _stored(path: Path) -> Any:
    """Return what torch.save wrote, if it is tensors and plain containers."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Detected pickle protocol", category=UserWarning)
        return require_torch(PURPOSE).load(str(path), map_location="cpu", weights_only=True)


def fill(module: Any, state: Mapping[str, Any], *, where: str) -> None:
    """Put named tensors into a module; every name and shape must fit."""
    try:
        missing, unexpected = module.load_state_dict(dict(state), strict=False)
    except RuntimeError as error:
        raise ModelError(
            f"The weights do not fit the module: {_shape_lines(error)}", where=where
        ) from error
    if missing or unexpected:
        raise ModelError(
            f"The weights do not fit the module: {len(missing)} missing, such as {list(missing)[:_N_SHOWN]}; "
            f"{len(unexpected)} unknown, such as {list(unexpected)[:_N_SHOWN]}.",
            where=where,
            fix="Build the module with the settings that it was trained with.",
        )


def _built(factory: str, arguments: Mapping[str, Any] | None, folder: str | Path | None) -> Any:
    torch = require_torch(PURPOSE)
    build = load_object(factory, folder=folder)
    if not callable(build):
        raise ConfigError("The factory cannot be called.", where="factory", given=factory)
    try:
        module = build(**dict(arguments or {}))
    except Exception as error:
        raise ModelError(
            f"The factory fails: {type(error).__name__}: {error}", where="factory", given=factory
        ) from error
    if not isinstance(module, torch.nn.Module):
        raise ModelError(
            "The factory gives no torch.nn.Module.", where="factory", given=type(module).__name__
        )
    return module


def _plain_state(found: Any, path: Path) -> dict[str, Any]:
    import torch

    for wrapper in WRAPPERS:
        if isinstance(found, Mapping) and isinstance(found.get(wrapper), Mapping):
            found = found[wrapper]
    if not isinstance(found, Mapping) or not all(
        isinstance(value, torch.Tensor) for value in found.values()
    ):
        raise _refused(path)
    return dict(found)


def _shape_lines(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if "size mismatch" in line]
    return "; ".join(lines[:_N_SHOWN]) or str(error).splitlines()[0]


def _refused(path: Path) -> ModelError:
    return ModelError(
        "This file is a pickle, and opening one can run any code it holds, so weakspot does not.",
        where=str(path),
        fix=AS_SAFETENSORS,
    )


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
    with quiet_scripts():
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
    if like is None or like.suffix.lower() == SAFETENSORS:
        return []
    found, keys = _stored(like), []
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
