"""`package.module:name` to the object of that name."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from weakspot.core.errors import ConfigError, ModelError


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
