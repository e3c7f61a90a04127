"""What is loaded when it is first needed, and hashes that tell one model from another.

Optional libraries, objects by `package.module:name`, and parts of a model.
"""

import copy
import hashlib
import importlib
import importlib.util
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, Generic, TypeVar

import numpy as np

from weakspot.core.arrays import AnyArray
from weakspot.core.errors import ConfigError, MissingExtraError, ModelError, UnavailableError
from weakspot.core.registry import LeftBehind


def require_library(name: str, *, extra: str, purpose: str) -> Any:
    """Import an optional library.

    Args:
        name: module to import, possibly with dots.
        extra: extra of weakspot that installs it.
        purpose: what it is needed for, in the plural.

    Raises:
        MissingExtraError: if it is not installed.
        ModelError: if it is installed but broken.
    """
    library = name.partition(".")[0]
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != library:
            raise ModelError(
                f"{library!r} is installed, but {error.name!r}, which it needs, is not.",
                fix=f"pip install {error.name}",
            ) from error
        raise MissingExtraError(library, extra=extra, purpose=purpose) from error
    except Exception as error:
        raise ModelError(
            f"{library!r} is installed but cannot be imported: {type(error).__name__}: {error}",
            fix=f"Reinstall {library} in a version that fits the installed torch.",
        ) from error


def require_few_bits() -> None:
    """Do nothing if weights can be loaded in 4 or 8 bits.

    Raises:
        UnavailableError: if the library that does it, which no extra installs, is not there.
    """
    if importlib.util.find_spec("bitsandbytes") is None:
        raise UnavailableError(
            "Weights in 4 or 8 bits need 'bitsandbytes', which is not installed.",
            where="quantise",
            fix="pip install bitsandbytes",
        )


def load_object(target: str, *, folder: str | Path | None = None) -> Any:
    """Import the object that an import string names.

    Args:
        target: `package.module:name`, the name possibly with dots.
        folder: where to look for the module before everywhere else.

    Raises:
        ConfigError: if the string is malformed, or the module or the name does not exist.
        ModelError: if the module fails while it is imported.
    """
    module_name, _, name = target.partition(":")
    if not all(part.isidentifier() for part in [*module_name.split("."), *name.split(".")]):
        raise ConfigError(
            "This is no import string.",
            given=target,
            fix="Write package.module:name, for example shop.models:predict.",
        )
    found = _module(module_name, target=target, folder=folder)
    for part in name.split("."):
        if not hasattr(found, part):
            public = (
                sorted(known for known in vars(found) if not known.startswith("_"))
                if hasattr(found, "__dict__")
                else []
            )
            raise ConfigError(
                f"{module_name!r} has no {name!r}.",
                given=target,
                fix=f"Choose one of {public[:20]}.",
            )
        found = getattr(found, part)
    return found


def _module(name: str, *, target: str, folder: str | Path | None) -> Any:
    with _searched_first(folder):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
                raise ModelError(
                    f"{name!r} needs the module {error.name!r}, which is not installed.",
                    given=target,
                ) from error
            raise ConfigError(
                f"There is no module {error.name!r}.",
                given=target,
                fix="Install its package, or give the folder that holds it.",
            ) from error
        except Exception as error:
            raise ModelError(
                f"{name!r} fails while it is imported: {type(error).__name__}: {error}",
                given=target,
            ) from error


@contextmanager
def _searched_first(folder: str | Path | None) -> Iterator[None]:
    if folder is None:
        yield
        return
    entry = str(Path(folder).resolve())
    sys.path.insert(0, entry)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        if entry in sys.path:
            sys.path.remove(entry)


def first_line(error: Exception) -> str:
    """Return what an error of a library says first, or what kind it is."""
    return (str(error).strip() or type(error).__name__).split("\n", maxsplit=1)[0][:300]


def last_line(error: Exception) -> str:
    """Return what an error of a library says last, which is where torch says what is wrong."""
    return (str(error).strip() or type(error).__name__).splitlines()[-1][:300]


Value = TypeVar("Value")


class LoadedOnce(LeftBehind, Generic[Value]):
    """Decorator for a method without arguments whose answer is kept; a failed load is tried again.

    Decoder threads may be the first to ask a classifier for its input size, and the model must not be loaded once a thread.
    """

    def __init__(self, load: Callable[[Any], Value]) -> None:
        self.__doc__ = load.__doc__
        self._load = load
        self._name = load.__name__
        self._lock = RLock()

    def __reduce__(self) -> tuple[type["LoadedOnce[Value]"], tuple[Callable[[Any], Value]]]:
        """Return how it is made again, for classes that are sent themselves because no module holds them."""
        return LoadedOnce, (self._load,)

    def __get__(self, instance: Any, owner: type | None = None) -> Value:
        if instance is None:
            return self  # type: ignore[return-value] # asked of the class, as ABCMeta does
        kept = vars(instance)
        with self._lock:
            if self._name not in kept:
                kept[self._name] = self._load(instance)
        value: Value = kept[self._name]
        return value


def reloaded(instance: Any, **changes: Any) -> Any:
    """Return a copy of an object that has loaded nothing yet, with other attributes."""
    kept = {
        name
        for kind in type(instance).__mro__
        for name, value in vars(kind).items()
        if isinstance(value, LoadedOnce)
    }
    other = copy.copy(instance)
    vars(other).clear()
    vars(other).update(
        {name: value for name, value in vars(instance).items() if name not in kept} | changes
    )
    return other


DIGITS = 16
_BLOCK = 1 << 20


def file_hash(path: Path) -> str:
    """Return the hash of a file's content, or of every file below a folder with its name."""
    digest = hashlib.sha256()
    files = (
        sorted(found for found in path.rglob("*") if found.is_file()) if path.is_dir() else [path]
    )
    for file in files:
        if path.is_dir():
            digest.update(file.relative_to(path).as_posix().encode())
        with file.open("rb") as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
    return digest.hexdigest()[:DIGITS]


def arrays_hash(arrays: Mapping[str, AnyArray]) -> str:
    """Return the hash of named arrays: names, kinds, shapes and numbers, in the order of names."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        values = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}|{values.dtype.str}|{values.shape}|".encode())
        digest.update(values.tobytes())
    return digest.hexdigest()[:DIGITS]


def settings_hash(*parts: Any) -> str:
    """Return the hash of settings: anything that JSON can hold, the rest by its text.

    >>> settings_hash({"side": 224, "crop": "centre"}) == settings_hash({"crop": "centre", "side": 224})
    True
    """
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def model_id(kind: str, name: str, *parts: Any) -> str:
    """Return `kind:name@hash`, the hash over all parts."""
    return f"{kind}:{name}@{settings_hash(*parts)}"
