"""scikit-learn objects from files, without ever unpickling."""

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weakspot.backends.optional_library import require_library
from weakspot.core.errors import ModelError

PICKLE_SUFFIXES = frozenset({".pkl", ".pickle", ".joblib", ".sav"})


def load_skops(path: Path, trusted_types: Sequence[str] = ()) -> Any:
    """Load a .skops file that holds only types known to be harmless, or named as trusted.

    Raises:
        ModelError: if it is a pickle, unreadable, or holds other types; those are named.
    """
    if not path.is_file():
        raise ModelError("There is no such model file.", where=str(path), fix="Correct the path.")
    if path.suffix.lower() in PICKLE_SUFFIXES or not zipfile.is_zipfile(path):
        raise ModelError(
            "This file is a pickle or no model file; opening a pickle can run any code it holds, so weakspot does not.",
            where=str(path),
            fix="Where you trust it, load it yourself and save it with skops.io.dump(model, 'model.skops').",
        )
    skops = require_library("skops.io", extra="sklearn", purpose="scikit-learn classifiers in files")
    unknown = sorted(set(_unknown_types(skops, path)) - set(trusted_types))
    if unknown:
        raise ModelError(
            f"The file holds types that are not known to be harmless: {', '.join(unknown)}.",
            where=str(path),
            fix=f"If you know them, set trusted_types = {unknown}.",
        )
    try:
        return skops.load(str(path), trusted=list(trusted_types))
    except Exception as error:
        raise ModelError(f"skops cannot load the file: {type(error).__name__}: {error}", where=str(path)) from error


def _unknown_types(skops: Any, path: Path) -> list[str]:
    try:
        return list(skops.get_untrusted_types(file=str(path)))
    except Exception as error:
        raise ModelError("This is no .skops file, or it is cut short.", where=str(path), fix="Save it again.") from error
