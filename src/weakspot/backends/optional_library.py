"""Libraries that only some users install."""

import importlib
import importlib.util
from typing import Any

from weakspot.core.errors import MissingExtraError, ModelError, UnavailableError


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
