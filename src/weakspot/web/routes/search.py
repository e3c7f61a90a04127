"""Search and counterfactuals: captions, generated pictures, rates. Nothing is drawn here: that is work."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from weakspot.app.browsing import drawing_view
from weakspot.app.browsing.drawing_arguments import MOST_BUDGET
from weakspot.app.browsing.drawing_view import (
    CounterfactualsView,
    DrawingCostView,
    DrawingSetupView,
    PromptView,
    SearchesView,
)
from weakspot.web.problems import RefusedError
from weakspot.web.server_parts import Parts, ProjectReader

router = APIRouter(prefix="/api/drawings", tags=["drawings"])

Digest = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$", description="sha256 of a generated picture")]
ClassName = Annotated[str, Query(min_length=1, max_length=500)]
KEPT = {"Cache-Control": "private, max-age=31536000, immutable"}


@router.get("/setup")
def setup(_person: ProjectReader, parts: Parts) -> DrawingSetupView:
    """Return what can be drawn in this project."""
    return drawing_view.setup(parts.workspace)


@router.get("/cost")
def cost(_person: ProjectReader, parts: Parts, n_pictures: Annotated[int, Query(ge=1, le=MOST_BUDGET)]) -> DrawingCostView:
    """Return what pictures cost at most."""
    return drawing_view.cost(parts.workspace, n_pictures)


@router.get("/prompt")
def prompt(
    _person: ProjectReader, parts: Parts, class_name: ClassName, caption: Annotated[str, Query(max_length=300)] = ""
) -> PromptView:
    """Return a caption as the generator gets it."""
    return drawing_view.prompt_of(parts.workspace, class_name, caption)


@router.get("/counterfactuals")
def counterfactuals(_person: ProjectReader, parts: Parts) -> CounterfactualsView:
    """Return what captions did to the classifier."""
    return drawing_view.kept_counterfactuals(parts.workspace)


@router.get("/searches")
def searches(_person: ProjectReader, parts: Parts) -> SearchesView:
    """Return what searches found."""
    return drawing_view.kept_searches(parts.workspace)


@router.get("/pictures/{digest}", response_class=Response, responses={200: {"content": {"image/jpeg": {}}}})
def picture(_person: ProjectReader, parts: Parts, digest: Digest, side: Annotated[int, Query(ge=32, le=1024)] = 192) -> Response:
    """Return a generated picture."""
    content = drawing_view.drawn_picture(parts.workspace, digest, side=side)
    if content is None:
        raise RefusedError(404, "There is no such generated picture.")
    return Response(content, media_type="image/jpeg", headers=KEPT)
