"""Repair: strategies, results, downloads."""

from typing import Any

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from weakspot.web.routes.overview import RunQuery
from weakspot.web.server_parts import ChangingNow, Owner, Parts, ProjectReader, repair_subject
from weakspot.web.services.repair import (
    ChangedImages,
    DownloadName,
    DownloadsView,
    GoBack,
    RepairOptions,
    RepairResults,
    changed_images,
    chunks,
    current_repair,
    downloads,
    go_back_to,
    open_download,
    repair_options,
    repair_results,
    title_of_repair,
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


@router.get("/repair/images")
def show_images(_person: ProjectReader, parts: Parts, run: RunQuery = None) -> ChangedImages:
    """Return images of the discovery half that the current repair changed."""
    return changed_images(parts.workspace, run)


@router.post("/repair/current")
def choose_repair(
    _person: Owner, parts: Parts, changing: ChangingNow, asked: GoBack, run: RunQuery = None
) -> RepairResults:
    """Go back to an earlier repair of a run: it is shown, downloaded and reported again; the present one is kept."""
    record = parts.workspace.record(run)
    run_id = "" if record is None else record.run_id
    with changing.alone(repair_subject(run_id)):
        before = current_repair(parts.workspace, run)
        title = title_of_repair(parts.workspace, run, asked.repair_id)
        results = go_back_to(parts.workspace, asked.repair_id, run)
        changing.note(
            "repair",
            repair_subject(run_id),
            f"Chose the repair {title}",
            run=run_id,
            before=before,
            after=asked.repair_id,
        )
    return results


@router.get("/repair/downloads")
def show_downloads(_person: Owner, parts: Parts, run: RunQuery = None) -> DownloadsView:
    """List the files of the newest repair."""
    return downloads(parts.workspace, run)


@router.get("/repair/downloads/{name}", response_class=StreamingResponse, responses=FILE_ANSWER)
def download(
    name: DownloadName, _person: Owner, parts: Parts, run: RunQuery = None
) -> StreamingResponse:
    """Return a file of the newest repair."""
    stream, size = open_download(parts.workspace, name, run)
    headers = {
        "Content-Disposition": f'attachment; filename="{name.value}"',
        "Content-Length": str(size),
        "X-Content-Type-Options": "nosniff",
    }
    return StreamingResponse(chunks(stream), media_type="application/octet-stream", headers=headers)
