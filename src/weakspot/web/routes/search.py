"""Search and counterfactuals: captions, generated images, rates. Nothing is generated here: that is work."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from weakspot.web.problems import RefusedError
from weakspot.web.server_parts import Parts, ProjectReader
from weakspot.web.services import generate as generation_requests
from weakspot.web.services.generate import (
    CounterfactualView,
    GenerationCostView,
    GenerationSetupView,
    PromptView,
    SearchView,
)
from weakspot.web.services.work import MAX_BUDGET

router = APIRouter(prefix="/api/generation", tags=["generation"])

Digest = Annotated[str, Path(pattern=r"^[0-9a-f]{64}$", description="sha256 of a generated image")]
ClassName = Annotated[str, Query(min_length=1, max_length=500)]
KEPT = {"Cache-Control": "private, max-age=31536000, immutable"}


@router.get("/setup")
def setup(_person: ProjectReader, parts: Parts) -> GenerationSetupView:
    """Return what can be generated in this project."""
    return generation_requests.setup(parts.workspace)


@router.get("/cost")
def cost(
    _person: ProjectReader, parts: Parts, n_images: Annotated[int, Query(ge=1, le=MAX_BUDGET)]
) -> GenerationCostView:
    """Return what images cost at most."""
    return generation_requests.cost(parts.workspace, n_images)


@router.get("/prompt")
def prompt(
    _person: ProjectReader,
    parts: Parts,
    class_name: ClassName,
    caption: Annotated[str, Query(max_length=300)] = "",
) -> PromptView:
    """Return a caption as the generator gets it."""
    return generation_requests.prompt_of(parts.workspace, class_name, caption)


@router.get("/counterfactuals")
def counterfactuals(_person: ProjectReader, parts: Parts) -> dict[str, list[CounterfactualView]]:
    """Return what captions did to the classifier."""
    return {"results": generation_requests.kept_counterfactuals(parts.workspace)}


@router.get("/searches")
def searches(_person: ProjectReader, parts: Parts) -> dict[str, list[SearchView]]:
    """Return what searches found."""
    return {"results": generation_requests.kept_searches(parts.workspace)}


@router.get(
    "/images/{digest}", response_class=Response, responses={200: {"content": {"image/jpeg": {}}}}
)
def image(
    _person: ProjectReader,
    parts: Parts,
    digest: Digest,
    side: Annotated[int, Query(ge=32, le=1024)] = 192,
) -> Response:
    """Return a generated image."""
    content = generation_requests.generated_image(parts.workspace, digest, side=side)
    if content is None:
        raise RefusedError(404, "There is no such generated image.")
    return Response(content, media_type="image/jpeg", headers=KEPT)
