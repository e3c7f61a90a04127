"""The server as one object: routes, middleware, refusals, and the built pages, or a word on how to build them."""

from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from starlette.staticfiles import StaticFiles

from weakspot import __version__
from weakspot.web import problems
from weakspot.web.auth.login import Login
from weakspot.web.auth.middleware import RequestChecks
from weakspot.web.routes import (
    activity,
    attributes,
    classes,
    images,
    marks,
    overview,
    repair,
    sample_map,
    search,
    session,
    setup,
    slices,
    studies,
)
from weakspot.web.server_parts import ServerParts

ROUTERS = (
    session.router,
    setup.router,
    overview.router,
    classes.router,
    slices.router,
    attributes.router,
    sample_map.router,
    repair.router,
    search.router,
    studies.router,
    studies.tutorial,
    images.router,
    marks.router,
    activity.router,
    activity.work,
)


class Server(FastAPI):
    """The server, whose schema says that refusals are JSON also where the answer is an image or a page."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            operations = (
                found for paths in super().openapi()["paths"].values() for found in paths.values()
            )
            for answer in (
                answer
                for found in operations
                for status, answer in found["responses"].items()
                if status >= "400"
            ):
                answer["content"] = {"application/json": next(iter(answer["content"].values()))}
        return super().openapi()


def create_app(parts: ServerParts) -> FastAPI:
    app = Server(
        title="weakspot",
        version=__version__,
        summary="Finds, names, proves and repairs the systematic failures of image classifiers.",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        responses=problems.PROBLEMS,
        generate_unique_id_function=lambda route: (
            f"{route.tags[0]}_{route.name}" if route.tags else route.name
        ),
    )
    login = Login(
        state=parts.state,
        owner_token=parts.owner_token,
        address=parts.address,
        is_read_only=parts.is_read_only,
    )
    app.state.parts = parts
    app.state.login = login
    problems.add_handlers(app)
    app.add_middleware(RequestChecks, login=login)
    for router in ROUTERS:
        app.include_router(router)
    add_pages(app)
    return app


PAGES = Path(__file__).parent / "built"
HOW_TO_BUILD = "python tools/build_pages.py"
NOT_BUILT = f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>weakspot</title></head>
<body><main><h1>weakspot</h1><p>The pages of weakspot are not built in this installation.
Run <code>{HOW_TO_BUILD}</code> in the checkout (it needs the npm registry once), then start again.</p></main></body></html>"""


def are_built(folder: Path = PAGES) -> bool:
    return (folder / "index.html").exists()


def add_pages(app: FastAPI, folder: Path = PAGES) -> None:
    """Serve the pages below the server's own path."""
    if are_built(folder):
        app.mount("/", StaticFiles(directory=folder, html=True), name="pages")
    else:
        app.get("/", include_in_schema=False, response_class=HTMLResponse)(lambda: NOT_BUILT)
