"""The image of a sample as it is: upright, in its own size or scaled on demand."""

import hashlib
import io
import threading
from dataclasses import dataclass

import numpy as np

from weakspot.core.errors import WeakspotError
from weakspot.media.images import decode_image
from weakspot.media.locations import read_location
from weakspot.web.services.workspace import Workspace

FEW_PIXELS = 512 * 512
LONGEST_JPEG = 65_500
QUALITY = 92
_DECODING = threading.BoundedSemaphore(2)


@dataclass(frozen=True, kw_only=True)
class Original:
    """An image for a page.

    Args:
        data: the encoded image.
        media_type: of it.
        tag: the same for the same image and size, for ever.
    """

    data: bytes
    media_type: str
    tag: str


def original(workspace: Workspace, row: int, *, side: int | None = None) -> Original | None:
    """Return the image of a sample, None if it has none that can be read.

    It is encoded anew, so that nothing but pixels reaches a page. Small ones lose nothing: people count their pixels.

    Args:
        workspace: the project.
        row: which sample.
        side: longest side in pixels; smaller images are not enlarged. None for the size it has.
    """
    dataset, here = workspace.samples.dataset, np.array([row])
    (location,), (content,) = dataset.locations(here), dataset.content_hashes(here)
    if location is None:
        return None
    try:
        with _DECODING, workspace.project.reading():
            # Asked for a side, a JPEG is decoded no larger than that needs.
            image = decode_image(read_location(location), image_side=side).image
            if side is not None:
                image.thumbnail((side, side))
    except WeakspotError:
        return None
    is_exact = image.width * image.height <= FEW_PIXELS or max(image.size) > LONGEST_JPEG
    stream = io.BytesIO()
    if is_exact:
        image.save(stream, format="PNG", compress_level=1)
    else:
        image.save(stream, format="JPEG", quality=QUALITY, subsampling=0)
    return Original(
        data=stream.getvalue(),
        media_type="image/png" if is_exact else "image/jpeg",
        tag=hashlib.sha256(f"{content} {side or 'whole'}".encode()).hexdigest()[:32],
    )
