"""Images: thumbnails by number, what is known of a sample, and an uploaded image, which is tried and forgotten."""

import threading
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Response, UploadFile

from weakspot.core.errors import DataError
from weakspot.media.bounded import decode_bounded
from weakspot.media.images import UNREADABLE_REASONS, UnreadableImageError
from weakspot.web.problems import RefusedError
from weakspot.web.roles import Person, Role
from weakspot.web.server_parts import Anyone, Owner, Parts, ServerParts
from weakspot.web.services.classes.samples import titles_of_row
from weakspot.web.services.samples.facts import SampleFacts, sample_facts
from weakspot.web.services.samples.thumbnails import SIDES, thumbnail
from weakspot.web.services.samples.uploads import TrialView, needed_side, try_image
from weakspot.web.state.studies import require_class

router = APIRouter(prefix="/api", tags=["images"])

NO_SAMPLE = "There is no such sample."
LARGEST_ROW = 2**53
A_YEAR = 31_536_000
JPEG: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"image/jpeg": {"schema": {"type": "string", "format": "binary"}}},
        "description": "A JPEG file.",
    },
    304: {"description": "The browser has it already."},
}
Row = Annotated[int, Path(ge=0, le=LARGEST_ROW)]
Tables = Annotated[str, Query(max_length=200, description="what the row number belongs to")]


@router.get("/images/{row}", response_class=Response, responses=JPEG)
def image(
    row: Row,
    tables: Tables,
    person: Anyone,
    parts: Parts,
    side: Annotated[
        int, Query(ge=SIDES[0], le=SIDES[-1], description="longest side in pixels, at least")
    ] = 160,
    if_none_match: Annotated[str | None, Header(max_length=1000)] = None,
) -> Response:
    """Return a small image of a sample."""
    _refuse_other_tables(parts, tables)
    _refuse_strangers(parts, person, row)
    found = thumbnail(parts.workspace, row, side=side)
    if found is None:
        raise RefusedError(404, "The sample has no image that can be read.")
    tag = f'"{found.tag}"'
    headers = {"ETag": tag, "Cache-Control": f"private, max-age={A_YEAR}, immutable"}
    if if_none_match is not None and tag in if_none_match:
        return Response(status_code=304, headers=headers)
    return Response(content=found.data, media_type="image/jpeg", headers=headers)


@router.get("/samples/{row}")
def sample(row: Row, tables: Tables, person: Anyone, parts: Parts) -> SampleFacts:
    """Return what is known of a sample."""
    _refuse_other_tables(parts, tables)
    _refuse_strangers(parts, person, row)
    found = sample_facts(parts.workspace, row, with_slices=person.role is not Role.ANNOTATOR)
    if found is None:
        raise RefusedError(404, NO_SAMPLE)
    return found


def _refuse_other_tables(parts: ServerParts, tables: str) -> None:
    if tables != parts.workspace.tables_key:
        raise RefusedError(
            404, "The samples have changed since this page was loaded.", fix="Load the page again."
        )


def _refuse_strangers(parts: ServerParts, person: Person, row: int) -> None:
    """Annotators see samples of their study's classes, on the half that people may look at; others see all."""
    if person.role is not Role.ANNOTATOR:
        return
    for title in titles_of_row(parts.workspace, row):
        try:
            require_class(parts.state, person, person.study_id, title)
        except RefusedError:
            continue
        return
    raise RefusedError(404, NO_SAMPLE)


PATIENCE_SECONDS = 20.0
_DECODING = threading.BoundedSemaphore(2)


@router.post("/uploads/image")
def try_upload(file: UploadFile, _person: Owner, parts: Parts) -> TrialView:
    """Say what the classifier makes of an image, and which samples look like it; nothing is kept."""
    side = needed_side(parts.workspace)
    if not _DECODING.acquire(timeout=PATIENCE_SECONDS):
        raise RefusedError(429, "Other images are being tried; wait a moment.", retry_after=5)
    try:
        decoded = decode_bounded(file.file.read(), image_side=side)
    except UnreadableImageError as error:
        what = f"The image cannot be used. {UNREADABLE_REASONS[error.reason]}"
        raise DataError(
            what,
            where="file",
            given=error.detail,
            fix="Choose another one, for example a JPEG or PNG.",
        ) from error
    finally:
        _DECODING.release()
    return try_image(parts.workspace, decoded)
