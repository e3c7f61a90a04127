"""Repair: strategies, results, downloads."""

from typing import Any

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from weakspot.web.routes.overview import RunQuery
from weakspot.web.server_parts import Owner, Parts, ProjectReader
from weakspot.web.services.repair.downloads import (
    DownloadName,
    DownloadsView,
    downloads,
    open_download,
)
from weakspot.web.services.repair.results import (
    RepairOptions,
    RepairResults,
    repair_options,
    repair_results,
)

router = APIRouter(prefix="/api", tags=["repair"])
FILE_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    }
}


@router.get("/repair/options")
def show_options(_person: ProjectReader, parts: Parts, run: RunQuery = None) -> RepairOptions:
    """Say which slices can be repaired, and in which ways."""
    return repair_options(parts.workspace, run)


@router.get("/repair/results")
def show_results(_person: ProjectReader, parts: Parts, run: RunQuery = None) -> RepairResults:
    """Say what repairs did, beside their baselines."""
    return repair_results(parts.workspace, run)


@router.get("/repair/downloads")
def show_downloads(_person: Owner, parts: Parts, run: RunQuery = None) -> DownloadsView:
    """List the files of the newest repair."""
    return downloads(parts.workspace, run)


@router.get("/repair/downloads/{name}", response_class=StreamingResponse, responses=FILE_ANSWER)
def download(
    name: DownloadName, _person: Owner, parts: Parts, run: RunQuery = None
) -> StreamingResponse:
    """Return a file of the newest repair."""
    found = open_download(parts.workspace, name, run)
    headers = {
        "Content-Disposition": f'attachment; filename="{found.name.value}"',
        "Content-Length": str(found.size),
        "X-Content-Type-Options": "nosniff",
    }
    return StreamingResponse(found.chunks(), media_type="application/octet-stream", headers=headers)
