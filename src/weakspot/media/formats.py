"""Which image formats are opened, told by their first bytes.

Files are opened by the reader of their own format instead of `PIL.Image.open`, because that one emits a process-wide warning for
large images before anything can be checked, and tries readers (EPS, for example) that start other programs.
"""

import importlib
from dataclasses import dataclass
from functools import cache

from PIL import ImageFile


@dataclass(frozen=True, kw_only=True)
class ImageFormat:
    """One format that can be opened.

    Args:
        name: how people call it.
        reader: module and class of the reader.
    """

    name: str
    reader: tuple[str, str]


_JPEG = ImageFormat(name="JPEG", reader=("weakspot.media.quiet_jpeg", "QuietJpegFile"))
_PNG = ImageFormat(name="PNG", reader=("PIL.PngImagePlugin", "PngImageFile"))
_GIF = ImageFormat(name="GIF", reader=("PIL.GifImagePlugin", "GifImageFile"))
_BMP = ImageFormat(name="BMP", reader=("PIL.BmpImagePlugin", "BmpImageFile"))
_TIFF = ImageFormat(name="TIFF", reader=("PIL.TiffImagePlugin", "TiffImageFile"))
_JPEG2000 = ImageFormat(name="JPEG 2000", reader=("PIL.Jpeg2KImagePlugin", "Jpeg2KImageFile"))
_PPM = ImageFormat(name="PPM", reader=("PIL.PpmImagePlugin", "PpmImageFile"))
_WEBP = ImageFormat(name="WebP", reader=("PIL.WebPImagePlugin", "WebPImageFile"))
_AVIF = ImageFormat(name="AVIF", reader=("PIL.AvifImagePlugin", "AvifImageFile"))

_BY_START: tuple[tuple[bytes, ImageFormat], ...] = (
    (b"\xff\xd8\xff", _JPEG),
    (b"\x89PNG\r\n\x1a\n", _PNG),
    (b"GIF87a", _GIF),
    (b"GIF89a", _GIF),
    (b"BM", _BMP),
    (b"II*\x00", _TIFF),
    (b"MM\x00*", _TIFF),
    (b"II+\x00", _TIFF),
    (b"MM\x00+", _TIFF),
    (b"\xff\x4f\xff\x51", _JPEG2000),
    (b"\x00\x00\x00\x0cjP  \r\n\x87\n", _JPEG2000),
    *((b"P" + digit, _PPM) for digit in (b"1", b"2", b"3", b"4", b"5", b"6", b"f", b"F")),
)
_AVIF_BRANDS = (b"avif", b"avis")
_UNSUPPORTED_BRANDS = (b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"mif1", b"msf1")
_UNSUPPORTED_BY_START: tuple[tuple[bytes, str], ...] = (
    (b"8BPS", "Photoshop"),
    (b"%PDF", "PDF"),
    (b"%!PS", "PostScript"),
    (b"\xff\x0a", "JPEG XL"),
    (b"\x00\x00\x00\x0cJXL \r\n\x87\n", "JPEG XL"),
    (b"\x00\x00\x01\x00", "icon"),
    (b"<svg", "SVG"),
    (b"\x93NUMPY", "NumPy array"),
    (b"SIMPLE  =", "FITS"),
    (b"v/1\x01", "OpenEXR"),
)
_DICOM_MARK_AT = 128


def sniff_format(data: bytes) -> ImageFormat | None:
    """Return the format whose mark the data starts with, or None.

    >>> sniff_format(b"GIF89a...").name
    'GIF'
    """
    for start, found in _BY_START:
        if data.startswith(start):
            return found
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _WEBP
    if data[4:8] == b"ftyp" and data[8:12] in _AVIF_BRANDS:
        return _AVIF
    return None


def sniff_unsupported(data: bytes) -> str | None:
    """Return the name of a known format that cannot be opened, or None."""
    for start, name in _UNSUPPORTED_BY_START:
        if data.startswith(start):
            return name
    if data[4:8] == b"ftyp" and data[8:12] in _UNSUPPORTED_BRANDS:
        return "HEIC"
    if data[_DICOM_MARK_AT : _DICOM_MARK_AT + 4] == b"DICM":
        return "DICOM"
    return None


@cache
def reader_class(found: ImageFormat) -> type[ImageFile.ImageFile] | None:
    """Return the reader of a format, or None when this Pillow was built without it."""
    module, name = found.reader
    try:
        reader: type[ImageFile.ImageFile] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        return None
    return reader
