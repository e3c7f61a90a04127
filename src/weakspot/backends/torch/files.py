"""Torch models from files, without ever unpickling an object."""

import pickle
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weakspot.backends.import_string import load_object
from weakspot.backends.optional_library import require_library
from weakspot.backends.torch.device import require_torch
from weakspot.core.errors import ConfigError, ModelError

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
        raise _refused(path) if path.suffix.lower() != ".safetensors" else _without_factory(path)
    module = _built(factory, arguments, folder)
    fill(module, load_state(path), where=str(path))
    return module


def is_script(path: Path) -> bool:
    """Return whether a file is TorchScript: an archive that holds code of its own beside the weights."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any(name.endswith("/constants.pkl") for name in archive.namelist())


def load_script(source: Any) -> Any:
    torch = require_torch(PURPOSE)
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message=".*torch.jit.*deprecated", category=DeprecationWarning
        )
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
    torch = require_torch(PURPOSE)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Detected pickle protocol", category=UserWarning)
        try:
            found = torch.load(str(path), map_location="cpu", weights_only=True)
        except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
            raise _refused(path) from error
    return _plain_state(found, path)


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


def _without_factory(path: Path) -> ConfigError:
    return ConfigError(
        "A safetensors file holds weights only.",
        where=str(path),
        fix="Set factory = 'package.module:function' that builds the module.",
    )
