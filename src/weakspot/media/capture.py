"""When an image was taken, and by which camera, as its EXIF block says."""

import hashlib
import struct
from datetime import UTC, datetime
from typing import Literal

_MODEL_TAG, _EXIF_TAG, _TAKEN_TAG = 0x0110, 0x8769, 0x9003
_ENTRY_BYTES = 12
_SHORTEST_HELD = 5
CAMERA_BITS = 24
"""The lowest bits of a moment tell the camera; above them stand seconds."""


def moment_of(exif: bytes) -> int:
    """Return seconds since 1970 and a hash of the camera's name in one number, 0 if the block does not say when.

    Args:
        exif: the EXIF block, with or without its header.
    """
    block = exif[6:] if exif.startswith(b"Exif\x00\x00") else exif
    order = {b"II": "<", b"MM": ">"}.get(block[:2])
    if order is None:
        return 0
    try:
        (start,) = struct.unpack_from(order + "I", block, 4)
        first = _entries(block, order, start)
        inner = _entries(block, order, int.from_bytes(first[_EXIF_TAG][1], _byte_order(order)))
        taken = _text(block, order, inner[_TAKEN_TAG])
        seconds = int(datetime.strptime(taken, "%Y:%m:%d %H:%M:%S").replace(tzinfo=UTC).timestamp())
    except (struct.error, KeyError, ValueError, OverflowError):
        return 0
    camera = _text(block, order, first[_MODEL_TAG]) if _MODEL_TAG in first else ""
    digest = hashlib.blake2b(camera.encode("utf-8", "replace"), digest_size=CAMERA_BITS // 8)
    return max(seconds, 0) << CAMERA_BITS | int.from_bytes(digest.digest(), "big")


def _byte_order(order: str) -> Literal["little", "big"]:
    return "little" if order == "<" else "big"


def _entries(block: bytes, order: str, start: int) -> dict[int, tuple[int, bytes]]:
    """Return count and the four bytes that hold or point to the value, by tag."""
    (n_entries,) = struct.unpack_from(order + "H", block, start)
    found = {}
    for number in range(n_entries):
        tag, _, count, value = struct.unpack_from(
            order + "HHI4s", block, start + 2 + number * _ENTRY_BYTES
        )
        found[tag] = count, value
    return found


def _text(block: bytes, order: str, entry: tuple[int, bytes]) -> str:
    count, value = entry
    if count >= _SHORTEST_HELD:
        (start,) = struct.unpack(order + "I", value)
        value = block[start : start + count]
    return value.split(b"\0")[0].decode("ascii", "replace").strip()
