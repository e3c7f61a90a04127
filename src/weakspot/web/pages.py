"""The built pages: one HTML file and its assets, or a word on how to build them."""

from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles

PAGES = Path(__file__).parent / "built"
NOT_BUILT = """<!doctype html><html lang="en"><title>weakspot</title><p>The pages of weakspot are not built in this installation.
Run <code>python tools/build_pages.py</code> in the checkout (it needs the npm registry once), then start again.</p></html>"""


def add_pages(app: FastAPI) -> None:
    """Serve the pages below the server's own path."""
    if (PAGES / "index.html").exists():
        app.mount("/", StaticFiles(directory=PAGES, html=True), name="pages")
    else:
        app.get("/", include_in_schema=False)(_not_built)


def _not_built() -> HTMLResponse:
    return HTMLResponse(NOT_BUILT, status_code=200)
