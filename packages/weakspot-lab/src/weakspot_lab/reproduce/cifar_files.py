"""The binary version of CIFAR-10 and CIFAR-100: one or two bytes for the labels, then the pixels by channel."""

from pathlib import Path

import numpy as np

from weakspot.core.arrays import AnyArray, IntArray
from weakspot.core.errors import DataError

CIFAR_SIDE = 32


def read_records(path: Path, n_labels: int) -> tuple[IntArray, AnyArray]:
    """Return labels [n, n_labels] and images [n, 32, 32, 3].

    Raises:
        DataError: if the file does not hold whole records.
    """
    content = np.fromfile(path, dtype=np.uint8)
    length = n_labels + 3 * CIFAR_SIDE**2
    if not len(content) or len(content) % length:
        raise DataError(
            "The file does not hold whole records.",
            where=str(path),
            given=f"{len(content)} bytes",
            fix=f"Take the binary version of CIFAR: {length} bytes an image.",
        )
    rows = content.reshape(-1, length)
    pixels = rows[:, n_labels:].reshape(-1, 3, CIFAR_SIDE, CIFAR_SIDE)
    return rows[:, :n_labels].astype(np.int64), np.ascontiguousarray(np.moveaxis(pixels, 1, 3))
