"""Columns of numbers as text: little-endian bytes in base64, which a page turns back into arrays without parsing numbers."""

import base64

import numpy as np

from weakspot.core.arrays import AnyArray

INT32, UINT8, FLOAT32 = np.dtype("<i4"), np.dtype("<u1"), np.dtype("<f4")


def packed(values: AnyArray, kind: np.dtype[np.generic]) -> str:
    """Return numbers as base64 of little-endian bytes.

    >>> packed(np.array([1, 2]), INT32)
    'AQAAAAIAAAA='
    """
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode("ascii")


def unpacked(text: str, kind: np.dtype[np.generic]) -> AnyArray:
    """Return what `packed` was given.

    >>> unpacked("AQAAAAIAAAA=", INT32).tolist()
    [1, 2]
    """
    return np.frombuffer(base64.b64decode(text), dtype=kind)
