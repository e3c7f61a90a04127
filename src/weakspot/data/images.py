"""Encoded images to upright RGB images, and what is wrong with those that cannot be decoded.

Which formats are opened is told by their first bytes; when and by which camera an image was taken, by its EXIF block.

Files are opened by the reader of their own format instead of `PIL.Image.open`, because that one emits a process-wide warning
for large images before anything can be checked, and tries readers (EPS, for example) that start other programs.
"""

import hashlib
import importlib
import re
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from io import BytesIO

import numpy as np
from PIL import Image, ImageFile, JpegImagePlugin

from weakspot.core.arrays import AnyArray
from weakspot.core.errors import WeakspotError
from weakspot.data.locations import read_location


class QuietJpegFile(JpegImagePlugin.JpegImageFile):
    """A JPEG file whose resolution is not looked up in EXIF: a damaged tag there would warn, though the image is sound."""

    def _read_dpi_from_exif(self) -> None:
        return


_READERS: dict[str, tuple[str, str]] = {
    "JPEG": ("weakspot.data.images", "QuietJpegFile"),
    "PNG": ("PIL.PngImagePlugin", "PngImageFile"),
    "GIF": ("PIL.GifImagePlugin", "GifImageFile"),
    "BMP": ("PIL.BmpImagePlugin", "BmpImageFile"),
    "TIFF": ("PIL.TiffImagePlugin", "TiffImageFile"),
    "JPEG 2000": ("PIL.Jpeg2KImagePlugin", "Jpeg2KImageFile"),
    "PPM": ("PIL.PpmImagePlugin", "PpmImageFile"),
    "WebP": ("PIL.WebPImagePlugin", "WebPImageFile"),
    "AVIF": ("PIL.AvifImagePlugin", "AvifImageFile"),
}
"""Module and class of the reader of every format that can be opened."""

_BY_START: tuple[tuple[bytes, str], ...] = (
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"GIF87a", "GIF"),
    (b"GIF89a", "GIF"),
    (b"BM", "BMP"),
    (b"II*\x00", "TIFF"),
    (b"MM\x00*", "TIFF"),
    (b"II+\x00", "TIFF"),
    (b"MM\x00+", "TIFF"),
    (b"\xff\x4f\xff\x51", "JPEG 2000"),
    (b"\x00\x00\x00\x0cjP  \r\n\x87\n", "JPEG 2000"),
    *((b"P" + digit, "PPM") for digit in (b"1", b"2", b"3", b"4", b"5", b"6", b"f", b"F")),
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


def sniff_format(data: bytes) -> str | None:
    """Return the format whose mark the data starts with, or None.

    >>> sniff_format(b"GIF89a...")
    'GIF'
    """
    for start, form in _BY_START:
        if data.startswith(start):
            return form
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WebP"
    if data[4:8] == b"ftyp" and data[8:12] in _AVIF_BRANDS:
        return "AVIF"
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
def reader_class(form: str) -> type[ImageFile.ImageFile] | None:
    """Return the reader of a format, or None when this Pillow was built without it."""
    module, name = _READERS[form]
    try:
        reader: type[ImageFile.ImageFile] = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError):
        return None
    return reader


_WHITE = (255, 255, 255, 255)
_OPAQUE = 255
_SIXTEEN_BITS = 65535.0
_WITH_ALPHA = ("RGBA", "LA", "PA", "RGBa", "La")


def to_rgb(image: Image.Image) -> tuple[Image.Image, tuple[str, ...]]:
    mode = image.mode
    if mode == "RGB" and "transparency" not in image.info:
        return image, ()
    if mode == "CMYK":
        return image.convert("RGB"), ("cmyk",)
    if mode.startswith("I") or mode == "F":
        return _deep_grey(image)
    if mode in _WITH_ALPHA or "transparency" in image.info:
        return _on_white(image)
    return image.convert("RGB"), ()


def _on_white(image: Image.Image) -> tuple[Image.Image, tuple[str, ...]]:
    with_alpha = image.convert("RGBA")
    lowest, _ = with_alpha.getchannel("A").getextrema()
    if isinstance(lowest, (int, float)) and lowest >= _OPAQUE:
        return with_alpha.convert("RGB"), ()
    return Image.alpha_composite(Image.new("RGBA", with_alpha.size, _WHITE), with_alpha).convert(
        "RGB"
    ), ("transparent",)


def _deep_grey(image: Image.Image) -> tuple[Image.Image, tuple[str, ...]]:
    values = np.asarray(image).astype(np.float64)
    notes: tuple[str, ...]
    if image.mode.startswith("I;16"):
        grey, notes = values * (255.0 / _SIXTEEN_BITS), ("16-bit",)
    elif image.mode == "F":
        grey, notes = _float_grey(values)
    else:
        grey, notes = _integer_grey(values)
    return Image.fromarray(np.rint(grey).clip(0, 255).astype(np.uint8)).convert("RGB"), notes


def _integer_grey(values: AnyArray) -> tuple[AnyArray, tuple[str, ...]]:
    if values.min() >= 0 and values.max() <= _SIXTEEN_BITS:
        return values * (255.0 / _SIXTEEN_BITS), ("16-bit",)
    return _stretch(values), ("32-bit", "range-stretched")


def _float_grey(values: AnyArray) -> tuple[AnyArray, tuple[str, ...]]:
    finite = np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    lowest, highest = float(finite.min()), float(finite.max())
    if lowest >= 0 and highest <= 1:
        return finite * 255.0, ("float",)
    if lowest >= 0 and highest <= _OPAQUE:
        return finite, ("float",)
    return _stretch(finite), ("float", "range-stretched")


def _stretch(values: AnyArray) -> AnyArray:
    lowest, highest = float(values.min()), float(values.max())
    return np.asarray(
        (values - lowest) * (255.0 / (highest - lowest)) if highest > lowest else values * 0.0
    )


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
    try:
        block, order = _block_of(exif)
        (start,) = struct.unpack_from(order + "I", block, 4)
        first = {tag: (count, value) for tag, _, count, value in _entries(block, order, start)}
        (inside,) = struct.unpack(order + "I", first[_EXIF_TAG][1])
        inner = {tag: (count, value) for tag, _, count, value in _entries(block, order, inside)}
        taken = _text(block, order, *inner[_TAKEN_TAG])
        seconds = int(datetime.strptime(taken, "%Y:%m:%d %H:%M:%S").replace(tzinfo=UTC).timestamp())
    except (struct.error, KeyError, ValueError, OverflowError):
        return 0
    camera = _text(block, order, *first[_MODEL_TAG]) if _MODEL_TAG in first else ""
    digest = hashlib.blake2b(camera.encode("utf-8", "replace"), digest_size=CAMERA_BITS // 8)
    return max(seconds, 0) << CAMERA_BITS | int.from_bytes(digest.digest(), "big")


def _block_of(exif: bytes) -> tuple[bytes, str]:
    """Return the block without its header, and its byte order as `struct` writes it; a KeyError if it is none."""
    block = exif.removeprefix(b"Exif\x00\x00")
    return block, {b"II": "<", b"MM": ">"}[block[:2]]


def _entries(block: bytes, order: str, start: int) -> Iterator[tuple[int, int, int, bytes]]:
    """Yield tag, kind, count and the four bytes that hold or point to the value."""
    (n_entries,) = struct.unpack_from(order + "H", block, start)
    for number in range(n_entries):
        yield struct.unpack_from(order + "HHI4s", block, start + 2 + number * _ENTRY_BYTES)


def _text(block: bytes, order: str, count: int, value: bytes) -> str:
    if count >= _SHORTEST_HELD:
        (start,) = struct.unpack(order + "I", value)
        value = block[start : start + count]
    return value.split(b"\0")[0].decode("ascii", "replace").strip()


UPRIGHT = 1
_ORIENTATION_TAG = 0x0112
_SHORT = 3

_SIDEWAYS = (5, 6, 7, 8)
_XMP_ORIENTATION = re.compile(rb"tiff:Orientation(?:=[\"']|>)\s*([1-8])")
_FOLDS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def orientation_of(image: Image.Image) -> int:
    """Return the orientation, 1 to 8, that the image's EXIF or XMP block tells; 1 when there is none."""
    exif = image.info.get("exif")
    if isinstance(exif, bytes):
        found = _exif_orientation(exif)
        if found is not None:
            return found
    for name in ("xmp", "XML:com.adobe.xmp"):
        packet = image.info.get(name)
        text = packet.encode() if isinstance(packet, str) else packet
        found_text = _XMP_ORIENTATION.search(text) if isinstance(text, bytes) else None
        if found_text is not None:
            return int(found_text.group(1))
    return UPRIGHT


def upright(image: Image.Image, orientation: int) -> Image.Image:
    return image if orientation not in _FOLDS else image.transpose(_FOLDS[orientation])


def _exif_orientation(exif: bytes) -> int | None:
    try:
        block, order = _block_of(exif)
        (directory,) = struct.unpack_from(order + "I", block, 4)
        for tag, kind, _, value in _entries(block, order, directory):
            if tag == _ORIENTATION_TAG:
                (told,) = struct.unpack_from(order + "H", value)
                return told if kind == _SHORT and UPRIGHT <= told <= max(_FOLDS) else None
    except (struct.error, KeyError):
        return None
    return None


PIXEL_LIMIT = 180_000_000
HASH_BYTES = 16
_DECODER_SCALES = (8, 4, 2)
_TIFF_ORIENTATION_TAG = 274
_ZERO_TAIL = bytes(16)
WORKER_LOST = "worker-lost"

UNREADABLE_REASONS: dict[str, str] = {
    "zero-bytes": "The file is empty.",
    "not-an-image": "The first bytes are those of no image format.",
    "unsupported": "An image or document of a format that weakspot does not open, for example HEIC or PDF.",
    "truncated": "The file ends before the image does.",
    "damaged": "The file starts like an image but cannot be decoded.",
    "too-large": f"The header announces more than {PIXEL_LIMIT:,} pixels, or memory did not suffice.",
    WORKER_LOST: "Worker processes died again and again on it; look at the file, and give workers more memory.",
}


class UnreadableImageError(WeakspotError):
    """An image cannot be decoded.

    Args:
        reason: one of `UNREADABLE_REASONS`.
        detail: what the decoder said, for people.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        self.reason = reason
        self.detail = detail or UNREADABLE_REASONS[reason]
        super().__init__(f"The image cannot be used: {reason}.", given=self.detail)


@dataclass(frozen=True, kw_only=True, eq=False)
class DecodedImage:
    """An upright RGB image.

    Args:
        image: RGB with 8 bits a channel; smaller than the full image when it was decoded scaled.
        size: width and height of the full image after orientation, in pixels.
        notes: what had to be handled, for example `exif-rotated`, `cmyk`, `16-bit`, `animated`.
        moment: when it was taken and by which camera (`weakspot.data.images`), 0 if it does not say.
    """

    image: Image.Image
    size: tuple[int, int]
    notes: tuple[str, ...] = ()
    moment: int = 0


def content_hash(data: bytes) -> str:
    """Return 32 hexadecimal digits that tell this encoded image from any other.

    >>> content_hash(b"")
    'cae66941d9efbd404e4d88758ea67670'
    """
    return hashlib.blake2b(data, digest_size=HASH_BYTES).hexdigest()


def decode_image(data: bytes, *, image_side: int | None = None) -> DecodedImage:
    """Decode an image completely.

    Args:
        data: the encoded image.
        image_side: shortest side that is needed; JPEGs are then decoded at the smallest scale (1/8, 1/4, 1/2) that keeps it.
    """
    image, form = _open(data)
    return _decode(image, form, data, _scale(image, form, image_side))


def decode_for_sides(data: bytes, sides: Collection[int | None]) -> dict[int | None, DecodedImage]:
    """Decode an image for readers that need different shortest sides; each gets what `decode_image` gives for its side.

    The image is decoded once for all sides that lead to the same scale: always, unless it is a JPEG much larger than the
    smallest side. A smaller scale is never derived from a larger one, as its pixels would then depend on who reads along.
    """
    image, form = _open(data)
    scales = {side: _scale(image, form, side) for side in sides}
    made: dict[int, DecodedImage] = {}
    for scale in dict.fromkeys(scales.values()):
        fresh = _open(data)[0] if made else image
        made[scale] = _decode(fresh, form, data, scale)
    return {side: made[scale] for side, scale in scales.items()}


def _decode(image: ImageFile.ImageFile, form: str, data: bytes, scale: int) -> DecodedImage:
    width, height = image.size
    if width * height > PIXEL_LIMIT:
        raise UnreadableImageError(
            "too-large", f"{width} x {height} pixels; the limit is {PIXEL_LIMIT:,}."
        )
    notes = _frame_notes(image, form)
    turned_by_reader = _turned_by_reader(image, form)
    if scale > 1:
        image.draft(image.mode, (max(1, width // scale), max(1, height // scale)))
    loaded = _load(image, form, data)
    if form != "JPEG":
        width, height = loaded.size
    orientation = UPRIGHT if form == "TIFF" else orientation_of(image)
    rgb, mode_notes = to_rgb(loaded)
    if orientation != UPRIGHT or turned_by_reader:
        notes += ("exif-rotated",)
    exif = image.info.get("exif")
    return DecodedImage(
        image=upright(rgb, orientation),
        size=(height, width) if orientation in _SIDEWAYS else (width, height),
        notes=notes + mode_notes,
        moment=moment_of(exif) if isinstance(exif, bytes) else 0,
    )


def _open(data: bytes) -> tuple[ImageFile.ImageFile, str]:
    if not data:
        raise UnreadableImageError("zero-bytes")
    form = sniff_format(data)
    if form is None:
        name = sniff_unsupported(data)
        if name is not None:
            raise UnreadableImageError("unsupported", f"{name}; convert it to JPEG or PNG.")
        raise UnreadableImageError("not-an-image", f"It starts with {data[:12]!r}.")
    reader = reader_class(form)
    if reader is None:
        raise UnreadableImageError("unsupported", f"This Pillow was built without {form}.")
    try:
        return reader(BytesIO(data)), form
    except Exception as error:  # on hostile bytes a reader may raise anything
        raise _unreadable(error, form, data) from error


def _load(image: ImageFile.ImageFile, form: str, data: bytes) -> Image.Image:
    if form == "JPEG" and _is_zero_padded(data):
        raise UnreadableImageError(
            "truncated", "JPEG: zeros stand where the rest of the image should be."
        )
    try:
        image.load()
    except Exception as error:  # on hostile bytes a decoder may raise anything
        raise _unreadable(error, form, data) from error
    return image


def _unreadable(error: Exception, form: str, data: bytes) -> UnreadableImageError:
    said = f"{form}: {str(error) or type(error).__name__}"
    if isinstance(
        error, (MemoryError, Image.DecompressionBombError, Image.DecompressionBombWarning)
    ):
        return UnreadableImageError("too-large", said)
    if _ends_early(str(error).lower(), form, data):
        return UnreadableImageError("truncated", said)
    return UnreadableImageError("damaged", said)


def _ends_early(said: str, form: str, data: bytes) -> bool:
    if form == "WebP":
        return len(data) < int.from_bytes(data[4:8], "little") + 8
    return any(
        word in said
        for word in (
            "truncated",
            "end of file",
            "eof",
            "unpack requires",
            "index out of range",
            "buffer is not",
        )
    )


def _is_zero_padded(data: bytes) -> bool:
    # An interrupted copy leaves zeros that a JPEG decoder takes for grey without complaint.
    return data.endswith(_ZERO_TAIL) and b"\xff\xd9" not in data[data.rfind(b"\xff\xda") :]


def _frame_notes(image: ImageFile.ImageFile, form: str) -> tuple[str, ...]:
    if form == "JPEG":
        return ()
    try:
        has_more = bool(getattr(image, "is_animated", False))
    except Exception:  # noqa: BLE001 (an onnxruntime without these operators computes nothing wrong)
        has_more = True
    if not has_more:
        return ()
    return ("multi-page",) if form == "TIFF" else ("animated",)


def _turned_by_reader(image: ImageFile.ImageFile, form: str) -> bool:
    tags = getattr(image, "tag_v2", {}) if form == "TIFF" else {}
    return bool(tags.get(_TIFF_ORIENTATION_TAG, UPRIGHT) != UPRIGHT)


def _scale(image: ImageFile.ImageFile, form: str, image_side: int | None) -> int:
    """Return by how much the decoder makes an image smaller so that its shortest side is not below the one that is needed."""
    if image_side is None or form != "JPEG":
        return 1
    shortest = min(image.size)
    return next((scale for scale in _DECODER_SCALES if -(-shortest // scale) >= image_side), 1)


JPEG_QUALITY = 82


def jpeg_of(data: bytes, side: int) -> bytes:
    """Return an encoded image as a JPEG that is at most `side` pixels wide and high.

    Raises:
        UnreadableImageError: if it cannot be decoded.
    """
    image = decode_image(data, image_side=side).image
    image.thumbnail((side, side))
    stream = BytesIO()
    image.save(stream, format="JPEG", quality=JPEG_QUALITY)
    return stream.getvalue()


def jpeg_at(location: str | None, side: int) -> bytes | None:
    """Return the same of the image at a location, None where there is none that can be read: a page is shown all the same."""
    if location is None:
        return None
    try:
        return jpeg_of(read_location(location), side)
    except WeakspotError:
        return None
