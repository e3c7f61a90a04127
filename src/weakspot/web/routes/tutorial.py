"""Tutorial: a tiny planted world that everybody learns on."""

from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import Field

from weakspot.web.problems import RefusedError
from weakspot.web.server_parts import Anyone, Parts
from weakspot.web.services import studies
from weakspot.web.services.studies import TutorialAnswer, TutorialWorld
from weakspot.web.services.view import View
from weakspot.web.state.studies import did_tutorial, finish_tutorial

router = APIRouter(prefix="/api/tutorial", tags=["tutorial"])
Number = Annotated[int, Path(ge=0, le=2**31)]


class TutorialPhrase(View):
    """Words that somebody tries."""

    phrase: str = Field(max_length=300)


@router.get("")
def planted_world(person: Anyone, parts: Parts) -> TutorialWorld:
    """Return the planted images and what the AI made of them."""
    return studies.world(did_tutorial=did_tutorial(parts.state, person))


@router.get(
    "/images/{number}", response_class=Response, responses={200: {"content": {"image/png": {}}}}
)
def planted_image(number: Number, _person: Anyone) -> Response:
    """Return a planted image."""
    if number >= studies.N_IMAGES:
        raise RefusedError(404, "There is no such image.")
    headers = {"Cache-Control": "private, max-age=86400"}
    return Response(studies.image(number), media_type="image/png", headers=headers)


@router.post("/phrase")
def try_phrase(request: TutorialPhrase, _person: Anyone) -> TutorialAnswer:
    """Answer words that somebody tries; nothing is kept."""
    return studies.answer(request.phrase)


@router.post("/done")
def finish(person: Anyone, parts: Parts) -> TutorialWorld:
    """Remember that somebody went through the tutorial."""
    finish_tutorial(parts.state, person)
    return studies.world(did_tutorial=did_tutorial(parts.state, person))
