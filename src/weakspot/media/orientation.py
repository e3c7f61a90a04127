"""The EXIF orientation of a picture, read without Pillow's EXIF parser, which warns process-wide about damaged tags."""

import re
import struct

from PIL import Image

UPRIGHT = 1
_ORIENTATION_TAG = 0x0112
_SHORT = 3
_ENTRY_BYTES = 12
_SIDEWAYS = (5, 6, 7, 8)
_XMP_ORIENTATION = re.compile(rb"tiff:Orientation(?:=[\"']|>)\s*([1-8])")
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def orientation_of(picture: Image.Image) -> int:
    """Return the orientation, 1 to 8, that the picture's EXIF or XMP block tells; 1 when there is none."""
    exif = picture.info.get("exif")
    if isinstance(exif, bytes):
        found = _exif_orientation(exif)
        if found is not None:
            return found
    for name in ("xmp", "XML:com.adobe.xmp"):
        packet = picture.info.get(name)
        text = packet.encode() if isinstance(packet, str) else packet
        found_text = _XMP_ORIENTATION.search(text) if isinstance(text, bytes) else None
        if found_text is not None:
            return int(found_text.group(1))
    return UPRIGHT


def is_sideways(orientation: int) -> bool:
    """Return whether width and height change places."""
    return orientation in _SIDEWAYS


def upright(picture: Image.Image, orientation: int) -> Image.Image:
    """Turn the picture as its orientation asks."""
    return picture if orientation not in _TURNS else picture.transpose(_TURNS[orientation])


def _exif_orientation(exif: bytes) -> int | None:
    block = exif[6:] if exif.startswith(b"Exif\x00\x00") else exif
    order = {b"II": "<", b"MM": ">"}.get(block[:2])
    if order is None:
        return None
    try:
        (directory,) = struct.unpack_from(order + "I", block, 4)
        (n_entries,) = struct.unpack_from(order + "H", block, directory)
        for number in range(n_entries):
            tag, kind, _, value = struct.unpack_from(order + "HHIH", block, directory + 2 + number * _ENTRY_BYTES)
            if tag == _ORIENTATION_TAG:
                return value if kind == _SHORT and UPRIGHT <= value <= max(_TURNS) else None
    except struct.error:
        return None
    return None
