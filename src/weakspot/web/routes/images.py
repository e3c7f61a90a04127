"""Images: thumbnails by number, what is known of a sample, and an uploaded image, which is tried and forgotten."""

import threading
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Response, UploadFile
from fastapi.responses import StreamingResponse

from weakspot.core.errors import DataError
from weakspot.data.bounded_decoding import decode_bounded
from weakspot.data.images import UNREADABLE_REASONS, UnreadableImageError
from weakspot.web.problems import RefusedError
from weakspot.web.server_parts import Anyone, Owner, Parts, ProjectReader, ServerParts
from weakspot.web.services.classes import titles_of_row
from weakspot.web.services.images import (
    ImageChoices,
    ImagePage,
    ImagePageQuery,
    ImageQuery,
    NearestImages,
    find_row,
    image_choices,
    image_lines,
    image_page,
    is_visible,
    nearest_images,
)
from weakspot.web.services.repair import RepairOnSample, repairs_on_sample
from weakspot.web.services.samples import (
    SIDES,
    EncodedImage,
    HeatView,
    SampleFacts,
    SampleFile,
    TrialView,
    heat_map,
    needed_side,
    original,
    sample_facts,
    sample_file,
    thumbnail,
    try_image,
)
from weakspot.web.state.store import Person, Role
from weakspot.web.state.studies import require_class, study_of

router = APIRouter(prefix="/api", tags=["images"])

NO_SAMPLE = "There is no such sample."
MAX_ROW = 2**53
A_YEAR = 31_536_000
JPEG: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"image/jpeg": {"schema": {"type": "string", "format": "binary"}}},
        "description": "A JPEG file.",
    },
    304: {"description": "The browser has it already."},
}
ANY_IMAGE: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            name: {"schema": {"type": "string", "format": "binary"}}
            for name in ("image/jpeg", "image/png")
        },
        "description": "A JPEG or PNG file.",
    },
    304: {"description": "The browser has it already."},
}
TABLE: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"text/csv": {"schema": {"type": "string"}}},
        "description": "A table, one line an image.",
    },
}
MAX_SIDE = 20_000
Row = Annotated[int, Path(ge=0, le=MAX_ROW)]
Tables = Annotated[str, Query(max_length=200, description="what the row number belongs to")]


def _refuse_unseen(parts: ServerParts, person: Person, row: int) -> None:
    """Nobody looks at the confirmation half or the test split, and annotators only at samples of their study."""
    if person.role is Role.ANNOTATOR:
        _refuse_strangers(parts, person, row)
    elif not is_visible(parts.workspace, row):
        raise RefusedError(
            404,
            NO_SAMPLE,
            fix="Images of the confirmation half and of the test split are shown to nobody.",
        )


def _refuse_strangers(parts: ServerParts, person: Person, row: int) -> None:
    """Annotators see samples of their study's classes, on the half that people may look at."""
    for title in titles_of_row(parts.workspace, row):
        try:
            require_class(parts.state, person, person.study_id, title)
        except RefusedError:
            continue
        return
    raise RefusedError(404, NO_SAMPLE)


def _seen(row: Row, tables: Tables, person: Anyone, parts: Parts) -> int:
    if tables != parts.workspace.tables_key:
        raise RefusedError(
            404, "The samples have changed since this page was loaded.", fix="Load the page again."
        )
    _refuse_unseen(parts, person, row)
    return row


SeenRow = Annotated[int, Depends(_seen)]
"""A row of the present tables that the person may look at."""


@router.get("/images/{row}", response_class=Response, responses=JPEG)
def image(
    row: SeenRow,
    parts: Parts,
    side: Annotated[
        int, Query(ge=SIDES[0], le=SIDES[-1], description="longest side in pixels, at least")
    ] = 160,
    if_none_match: Annotated[str | None, Header(max_length=1000)] = None,
) -> Response:
    """Return a small image of a sample."""
    found = thumbnail(parts.workspace, row, side=side)
    if found is None:
        raise RefusedError(404, "The sample has no image that can be read.")
    return _cached(found, if_none_match)


@router.get("/images/{row}/original", response_class=Response, responses=ANY_IMAGE)
def original_image(
    row: SeenRow,
    parts: Parts,
    side: Annotated[
        int | None,
        Query(ge=SIDES[0], le=MAX_SIDE, description="longest side in pixels, at most"),
    ] = None,
    if_none_match: Annotated[str | None, Header(max_length=1000)] = None,
) -> Response:
    """Return the image of a sample upright and in its own size, or scaled down."""
    found = original(parts.workspace, row, side=side)
    if found is None:
        raise RefusedError(404, "The sample has no image that can be read.")
    return _cached(found, if_none_match)


@router.get("/images")
def images(
    asked: Annotated[ImagePageQuery, Query()], _person: ProjectReader, parts: Parts
) -> ImagePage:
    """Return images that people may look at, chosen and ordered."""
    return image_page(parts.workspace, asked)


@router.get("/image-choices")
def choices(_person: ProjectReader, parts: Parts) -> ImageChoices:
    """Return what images can be chosen by."""
    return image_choices(parts.workspace)


@router.get("/image-list", response_class=StreamingResponse, responses=TABLE)
def image_list(
    asked: Annotated[ImageQuery, Query()], person: ProjectReader, parts: Parts
) -> StreamingResponse:
    """Return the chosen images as a table with file names; with their paths for owners."""
    lines = image_lines(parts.workspace, asked, with_paths=person.role is Role.OWNER)
    headers = {"Content-Disposition": 'attachment; filename="images.csv"'}
    return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=headers)


@router.get("/sample-ids/{sample_id}")
def sample_by_id(
    sample_id: Annotated[str, Path(max_length=200)], person: Anyone, parts: Parts
) -> SampleFacts:
    """Return what is known of a sample, by its id: addresses of images hold it, because rows change with the data."""
    row = find_row(parts.workspace, sample_id)
    if row is None:
        raise RefusedError(404, NO_SAMPLE)
    _refuse_unseen(parts, person, row)
    return _facts(parts, person, row)


@router.get("/samples/{row}/file")
def file_of_sample(_person: Owner, row: SeenRow, parts: Parts) -> SampleFile:
    """Return where the image of a sample is."""
    return sample_file(parts.workspace, row)


@router.get("/samples/{row}/nearest")
def nearest(_person: ProjectReader, row: SeenRow, parts: Parts) -> NearestImages:
    """Return the images that look most like a sample, right and wrong ones."""
    return nearest_images(parts.workspace, row)


@router.get("/samples/{row}/heat")
def heat(_person: ProjectReader, row: SeenRow, parts: Parts) -> HeatView:
    """Go on with the heat map of a sample for a moment; ask again until all patches are done."""
    found = heat_map(parts.workspace, row)
    if found is None:
        raise RefusedError(404, "The sample has no image that can be read.")
    return found


@router.get("/samples/{row}/repairs")
def repairs(_person: ProjectReader, row: SeenRow, parts: Parts) -> dict[str, list[RepairOnSample]]:
    """Return what each repair of the newest run changed for a sample."""
    return {"repairs": repairs_on_sample(parts.workspace, row)}


@router.get("/samples/{row}")
def sample(row: SeenRow, person: Anyone, parts: Parts) -> SampleFacts:
    """Return what is known of a sample."""
    return _facts(parts, person, row)


def _facts(parts: ServerParts, person: Person, row: int) -> SampleFacts:
    found = sample_facts(parts.workspace, row, with_slices=person.role is not Role.ANNOTATOR)
    if found is None:
        raise RefusedError(404, NO_SAMPLE)
    if person.role is Role.ANNOTATOR and person.study_id is not None:
        # The groups that phrases are measured on would tell what to say.
        hidden = study_of(parts.state, person, person.study_id).options.groups
        shown = [column for column in found.columns if column.name != hidden]
        return found.model_copy(update={"columns": shown})
    return found


def _cached(image: EncodedImage, known: str | None) -> Response:
    quoted = f'"{image.tag}"'
    headers = {"ETag": quoted, "Cache-Control": f"private, max-age={A_YEAR}, immutable"}
    if known is not None and quoted in known:
        return Response(status_code=304, headers=headers)
    return Response(content=image.data, media_type=image.media_type, headers=headers)


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
