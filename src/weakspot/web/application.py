"""The server as one object: routes, gate, refusals, pages."""

from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from weakspot import __version__
from weakspot.web import problems
from weakspot.web.gate.entering import Door
from weakspot.web.gate.middleware import Gate
from weakspot.web.pages import add_pages
from weakspot.web.routes import (
    attributes,
    classes,
    health,
    jobs,
    overview,
    pictures,
    repair,
    sample_map,
    search,
    session,
    slices,
    studies,
    tutorial,
    uploads,
)
from weakspot.web.server_parts import ServerParts

ROUTERS = (
    session,
    health,
    overview,
    classes,
    slices,
    attributes,
    sample_map,
    repair,
    search,
    studies,
    tutorial,
    pictures,
    uploads,
    jobs,
)


class Server(FastAPI):
    """The server, whose schema says that refusals are JSON also where the answer is a picture or a page."""

    def openapi(self) -> dict[str, Any]:
        """Return the schema."""
        if self.openapi_schema is None:
            operations = (found for paths in super().openapi()["paths"].values() for found in paths.values())
            for answer in (answer for found in operations for status, answer in found["responses"].items() if status >= "400"):
                answer["content"] = {"application/json": next(iter(answer["content"].values()))}
        return super().openapi()


def create_app(parts: ServerParts) -> FastAPI:
    """Return the server of a project."""
    app = Server(
        title="weakspot",
        version=__version__,
        summary="Finds, names, proves and repairs the systematic failures of image classifiers.",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses=problems.PROBLEMS,
        generate_unique_id_function=_operation_id,
    )
    door = Door(state=parts.state, owner_token=parts.owner_token, address=parts.address, is_read_only=parts.is_read_only)
    app.state.parts = parts
    app.state.door = door
    problems.add_handlers(app)
    app.add_middleware(Gate, door=door)
    for page in ROUTERS:
        app.include_router(page.router)
    add_pages(app)
    return app


def _operation_id(route: APIRoute) -> str:
    return f"{route.tags[0]}_{route.name}" if route.tags else route.name
