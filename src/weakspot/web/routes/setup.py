"""Set-up of a project that has no samples yet: places, data, classifier. Only its owner is asked."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from weakspot.web.problems import RefusedError
from weakspot.web.routes.images import JPEG
from weakspot.web.server_parts import Owner, Parts, ServerParts
from weakspot.web.services.setup import (
    MAX_PATH_LENGTH,
    N_IMAGES,
    ChosenData,
    ChosenProject,
    DataLook,
    PlaceList,
    ProjectSetup,
    SetupState,
)

router = APIRouter(prefix="/api/setup", tags=["setup"])


@router.get("")
def state(_person: Owner, parts: Parts) -> SetupState:
    """Say how far the set-up is."""
    return _setup(parts).state()


@router.get("/places")
def places(
    _person: Owner, parts: Parts, path: Annotated[str, Query(max_length=MAX_PATH_LENGTH)] = ""
) -> PlaceList:
    """List a folder of the server's machine, as far as it may be looked into."""
    return _setup(parts).places.list_folder(path)


@router.post("/look")
def look(chosen: ChosenData, _person: Owner, parts: Parts) -> DataLook:
    """Look at data before it is read."""
    return _setup(parts).look(chosen)


@router.get("/images/{place}", response_class=Response, responses=JPEG)
def image(place: Annotated[int, Path(ge=0, lt=N_IMAGES)], _person: Owner, parts: Parts) -> Response:
    """Return a small image that the last look saw."""
    found = _setup(parts).image(place)
    if found is None:
        raise RefusedError(404, "There is no image here that can be read.")
    return Response(found, media_type="image/jpeg", headers={"Cache-Control": "no-store"})


@router.post("")
def write(chosen: ChosenProject, _person: Owner, parts: Parts) -> SetupState:
    """Write what the project is made of; the pre-flight and the run are works of their own."""
    return _setup(parts).write(chosen)


def _setup(parts: ServerParts) -> ProjectSetup:
    if parts.setup is None:
        raise RefusedError(409, "This project is set up already.")
    return parts.setup
