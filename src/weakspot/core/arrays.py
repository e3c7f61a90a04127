"""Names for the array types used everywhere, and one named generator of random numbers per step.

Shapes are written as letters: *n* samples, *c* classes, *d* dimensions of an embedding, *m* phrases.
"""

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]
DoubleArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
ByteArray = npt.NDArray[np.uint8]
AnyArray = npt.NDArray[Any]

BLOCK_ROWS = 32_768
"""So many embeddings are worked on at a time where all of them would need too much memory."""


def unit_rows(embeddings: AnyArray) -> FloatArray:
    """Scale every row of embeddings [n, d] to length one; rows of zeros stay zero.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).round(1).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    values = np.asarray(embeddings, dtype=np.float32)
    found = np.empty_like(values)
    for start in range(0, len(values), BLOCK_ROWS):
        block = values[start : start + BLOCK_ROWS]
        lengths = np.linalg.norm(block, axis=1, keepdims=True)
        np.divide(block, np.where(lengths > 0, lengths, 1.0), out=found[start : start + BLOCK_ROWS])
    return found


def even_part(values: IntArray, most: int) -> IntArray:
    """Return at most so many of the values, at even steps.

    >>> even_part(np.arange(10), 4).tolist(), even_part(np.arange(3), 4).tolist()
    ([0, 2, 5, 7], [0, 1, 2])
    """
    return values if len(values) <= most else values[np.arange(most) * len(values) // most]


def child_seed(seed: int, *names: str) -> int:
    """Derive the seed of a named step from the seed of the run, the same on every machine.

    >>> child_seed(0, "discover", "apple") == child_seed(0, "discover", "apple")
    True
    >>> child_seed(0, "discover") == child_seed(0, "verify")
    False
    """
    digest = hashlib.sha256("/".join([str(seed), *names]).encode()).digest()
    return int.from_bytes(digest[:4], "big")


def generator(seed: int, *names: str) -> np.random.Generator:
    return np.random.default_rng(child_seed(seed, *names))
