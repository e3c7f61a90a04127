"""Short hashes that tell one model from another."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from weakspot.core.arrays import AnyArray

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
