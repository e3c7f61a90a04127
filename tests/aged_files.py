"""Image files of long ago: old enough that their time of change can be relied on."""

import io
import os
from pathlib import Path

import numpy as np
from PIL import Image

LONG_AGO = 1_500_000_000


def image(number: int) -> bytes:
    """Return a small image as PNG, another for every number."""
    stream = io.BytesIO()
    Image.fromarray(np.full((8, 8, 3), number, dtype=np.uint8)).save(stream, "PNG")
    return stream.getvalue()


def put(path: Path, data: bytes, *, seconds: int = LONG_AGO) -> None:
    """Write a file with a time of change."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (seconds, seconds))
