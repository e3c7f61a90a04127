"""Libraries that only some users install."""

import importlib
from typing import Any

from weakspot.core.errors import MissingExtraError, ModelError


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
