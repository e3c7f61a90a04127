"""Small pictures for pages and reports."""

import io

from weakspot.core.errors import WeakspotError
from weakspot.media.locations import read_location
from weakspot.media.pictures import decode_picture

JPEG_QUALITY = 82


def jpeg_of(data: bytes, side: int) -> bytes:
    """Return an encoded picture as a JPEG that is at most `side` pixels wide and high.

    Raises:
        UnreadablePictureError: if it cannot be decoded.
    """
    picture = decode_picture(data, picture_side=side).picture
    picture.thumbnail((side, side))
    stream = io.BytesIO()
    picture.save(stream, format="JPEG", quality=JPEG_QUALITY)
    return stream.getvalue()


def jpeg_at(location: str | None, side: int) -> bytes | None:
    """Return the same of the picture at a location, None where there is none that can be read: a page is shown all the same."""
    if location is None:
        return None
    try:
        return jpeg_of(read_location(location), side)
    except WeakspotError:
        return None
