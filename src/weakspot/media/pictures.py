"""Encoded pictures to upright RGB pictures, and what is wrong with those that cannot be decoded."""

import hashlib
from dataclasses import dataclass
from io import BytesIO

from PIL import Image, ImageFile

from weakspot.core.errors import WeakspotError
from weakspot.media.formats import PictureFormat, reader_class, sniff_format, sniff_unsupported
from weakspot.media.orientation import UPRIGHT, is_sideways, orientation_of, upright
from weakspot.media.pixels import to_rgb

PIXEL_LIMIT = 180_000_000
HASH_BYTES = 16
_DECODER_SCALES = (8, 4, 2)
_TIFF_ORIENTATION_TAG = 274
_ZERO_TAIL = bytes(16)
WORKER_LOST = "worker-lost"

UNREADABLE_REASONS: dict[str, str] = {
    "zero-bytes": "The file is empty.",
    "not-a-picture": "The first bytes are those of no picture format.",
    "unsupported": "A picture or document of a format that weakspot does not open, for example HEIC or PDF.",
    "truncated": "The file ends before the picture does.",
    "damaged": "The file starts like a picture but cannot be decoded.",
    "too-large": f"The header announces more than {PIXEL_LIMIT:,} pixels, or memory did not suffice.",
    WORKER_LOST: "Worker processes died again and again on it; look at the file, and give workers more memory.",
}


class UnreadablePictureError(WeakspotError):
    """A picture cannot be decoded.

    Args:
        reason: one of `UNREADABLE_REASONS`.
        detail: what the decoder said, for people.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        self.reason = reason
        self.detail = detail or UNREADABLE_REASONS[reason]
        super().__init__(f"The picture cannot be used: {reason}.", given=self.detail)


@dataclass(frozen=True, kw_only=True, eq=False)
class DecodedPicture:
    """An upright RGB picture.

    Args:
        picture: RGB with 8 bits a channel; smaller than the full picture when it was decoded scaled.
        width: pixels of the full picture after orientation.
        height: pixels of the full picture after orientation.
        notes: what had to be handled, for example `exif-rotated`, `cmyk`, `16-bit`, `animated`.
    """

    picture: Image.Image
    width: int
    height: int
    notes: tuple[str, ...] = ()


def content_hash(data: bytes) -> str:
    """Return 32 hexadecimal digits that tell this encoded picture from any other.

    >>> content_hash(b"")
    'cae66941d9efbd404e4d88758ea67670'
    """
    return hashlib.blake2b(data, digest_size=HASH_BYTES).hexdigest()


def decode_picture(data: bytes, *, picture_side: int | None = None) -> DecodedPicture:
    """Decode a picture completely.

    Args:
        data: the encoded picture.
        picture_side: shortest side that is needed; JPEGs are then decoded at the smallest scale (1/8, 1/4, 1/2) that keeps it.
    """
    picture, found = _open(data)
    width, height = picture.size
    if width * height > PIXEL_LIMIT:
        raise UnreadablePictureError("too-large", f"{width} x {height} pixels; the limit is {PIXEL_LIMIT:,}.")
    notes = _frame_notes(picture, found)
    turned_by_reader = _turned_by_reader(picture, found)
    if picture_side is not None and found.name == "JPEG":
        _ask_scaled(picture, picture_side)
    loaded = _load(picture, found, data)
    if found.name != "JPEG":
        width, height = loaded.size
    orientation = UPRIGHT if found.name == "TIFF" else orientation_of(picture)
    rgb, mode_notes = to_rgb(loaded)
    if orientation != UPRIGHT or turned_by_reader:
        notes += ("exif-rotated",)
    if is_sideways(orientation):
        width, height = height, width
    return DecodedPicture(picture=upright(rgb, orientation), width=width, height=height, notes=notes + mode_notes)


def _open(data: bytes) -> tuple[ImageFile.ImageFile, PictureFormat]:
    if not data:
        raise UnreadablePictureError("zero-bytes")
    found = sniff_format(data)
    if found is None:
        name = sniff_unsupported(data)
        if name is not None:
            raise UnreadablePictureError("unsupported", f"{name}; convert it to JPEG or PNG.")
        raise UnreadablePictureError("not-a-picture", f"It starts with {data[:12]!r}.")
    reader = reader_class(found)
    if reader is None:
        raise UnreadablePictureError("unsupported", f"This Pillow was built without {found.name}.")
    try:
        return reader(BytesIO(data)), found
    except Exception as error:  # on hostile bytes a reader may raise anything
        raise _unreadable(error, found, data) from error


def _load(picture: ImageFile.ImageFile, found: PictureFormat, data: bytes) -> Image.Image:
    if found.name == "JPEG" and _is_zero_padded(data):
        raise UnreadablePictureError("truncated", "JPEG: zeros stand where the rest of the picture should be.")
    try:
        picture.load()
    except Exception as error:  # on hostile bytes a decoder may raise anything
        raise _unreadable(error, found, data) from error
    return picture


def _unreadable(error: Exception, found: PictureFormat, data: bytes) -> UnreadablePictureError:
    said = f"{found.name}: {str(error) or type(error).__name__}"
    if isinstance(error, (MemoryError, Image.DecompressionBombError, Image.DecompressionBombWarning)):
        return UnreadablePictureError("too-large", said)
    if _ends_early(str(error).lower(), found, data):
        return UnreadablePictureError("truncated", said)
    return UnreadablePictureError("damaged", said)


def _ends_early(said: str, found: PictureFormat, data: bytes) -> bool:
    if found.name == "WebP":
        return len(data) < int.from_bytes(data[4:8], "little") + 8
    return any(
        word in said for word in ("truncated", "end of file", "eof", "unpack requires", "index out of range", "buffer is not")
    )


def _is_zero_padded(data: bytes) -> bool:
    # An interrupted copy leaves zeros that a JPEG decoder takes for grey without complaint.
    return data.endswith(_ZERO_TAIL) and b"\xff\xd9" not in data[data.rfind(b"\xff\xda") :]


def _frame_notes(picture: ImageFile.ImageFile, found: PictureFormat) -> tuple[str, ...]:
    if found.name == "JPEG":
        return ()
    try:
        has_more = bool(getattr(picture, "is_animated", False))
    except Exception:  # noqa: BLE001 - damage behind the first frame does not touch the first frame
        has_more = True
    if not has_more:
        return ()
    return ("multi-page",) if found.name == "TIFF" else ("animated",)


def _turned_by_reader(picture: ImageFile.ImageFile, found: PictureFormat) -> bool:
    tags = getattr(picture, "tag_v2", {}) if found.name == "TIFF" else {}
    return bool(tags.get(_TIFF_ORIENTATION_TAG, UPRIGHT) != UPRIGHT)


def _ask_scaled(picture: ImageFile.ImageFile, picture_side: int) -> None:
    width, height = picture.size
    for scale in _DECODER_SCALES:
        if -(-min(width, height) // scale) >= picture_side:
            picture.draft(picture.mode, (max(1, width // scale), max(1, height // scale)))
            return
