"""The built pages: one HTML file and its assets, or a word on how to build them."""

from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from starlette.staticfiles import StaticFiles

PAGES = Path(__file__).parent / "built"
HOW_TO_BUILD = "python tools/build_pages.py"
NOT_BUILT = f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>weakspot</title></head>
<body><main><h1>weakspot</h1><p>The pages of weakspot are not built in this installation.
Run <code>{HOW_TO_BUILD}</code> in the checkout (it needs the npm registry once), then start again.</p></main></body></html>"""


def are_built(folder: Path = PAGES) -> bool:
    """Return whether there are pages to show."""
    return (folder / "index.html").exists()


def add_pages(app: FastAPI, folder: Path = PAGES) -> None:
    """Serve the pages below the server's own path."""
    if are_built(folder):
        app.mount("/", StaticFiles(directory=folder, html=True), name="pages")
    else:
        app.get("/", include_in_schema=False, response_class=HTMLResponse)(_not_built)


def _not_built() -> HTMLResponse:
    return HTMLResponse(NOT_BUILT)
