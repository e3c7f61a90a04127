"""Uploads: a picture is tried and forgotten."""

import threading

from fastapi import APIRouter, UploadFile

from weakspot.app.browsing.trying import TrialView, needed_side, try_picture
from weakspot.core.errors import DataError
from weakspot.media.bounded import decode_bounded
from weakspot.media.pictures import UNREADABLE_REASONS, UnreadablePictureError
from weakspot.web.problems import RefusedError
from weakspot.web.server_parts import Owner, Parts

router = APIRouter(prefix="/api", tags=["uploads"])
PATIENCE_SECONDS = 20.0
_DECODING = threading.BoundedSemaphore(2)


@router.post("/uploads/picture")
def picture(file: UploadFile, _person: Owner, parts: Parts) -> TrialView:
    """Say what the classifier makes of a picture, and which samples look like it; nothing is kept."""
    side = needed_side(parts.workspace)
    if not _DECODING.acquire(timeout=PATIENCE_SECONDS):
        raise RefusedError(429, "Other pictures are being tried; wait a moment.", retry_after=5)
    try:
        decoded = decode_bounded(file.file.read(), picture_side=side)
    except UnreadablePictureError as error:
        what = f"The picture cannot be used. {UNREADABLE_REASONS[error.reason]}"
        raise DataError(what, where="file", given=error.detail, fix="Choose another one, for example a JPEG or PNG.") from error
    finally:
        _DECODING.release()
    return try_picture(parts.workspace, decoded)
