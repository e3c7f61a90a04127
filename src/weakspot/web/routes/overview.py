"""Overview: how the classifier does, the worst slices, runs, reports."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from fastapi.responses import HTMLResponse

from weakspot.report.first_answer import FirstAnswer
from weakspot.web.problems import RefusedError
from weakspot.web.server_parts import Parts, ProjectReader
from weakspot.web.services.overview import (
    REPORT_FILE,
    MethodChoice,
    OverviewView,
    RunView,
    WorstImages,
    discoverer_choices,
    has_report,
    overview,
    run_facts,
    run_list,
    worst_images,
)

router = APIRouter(prefix="/api", tags=["overview"])

RUN_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$"
RunQuery = Annotated[
    str | None, Query(pattern=RUN_PATTERN, description="the newest run by default")
]
RunPath = Annotated[str, Path(pattern=RUN_PATTERN)]
REPORT_POLICY = "; ".join(
    (
        "sandbox",
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        "img-src data:",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)


@router.get("/overview")
def show_overview(_person: ProjectReader, parts: Parts, run: RunQuery = None) -> OverviewView:
    """Say how the classifier does, where it does worst, and what was tried."""
    return overview(parts.workspace, run)


@router.get("/runs")
def show_runs(_person: ProjectReader, parts: Parts) -> dict[str, list[RunView]]:
    """List all runs, newest first."""
    return {"runs": run_list(parts.workspace)}


@router.get("/runs/{run_id}/answer")
def show_first_answer(run_id: RunPath, _person: ProjectReader, parts: Parts) -> FirstAnswer:
    """Say of a run what the terminal and the report begin with."""
    return parts.workspace.make_of_run(run_id, "facts", run_facts).answer


@router.get("/runs/{run_id}/images")
def show_worst_images(run_id: RunPath, _person: ProjectReader, parts: Parts) -> WorstImages:
    """Name a few samples of each of the worst slices, from the discovery half."""
    return worst_images(parts.workspace, run_id)


@router.get("/runs/{run_id}/report", response_class=HTMLResponse)
def show_report(run_id: RunPath, _person: ProjectReader, parts: Parts) -> HTMLResponse:
    """Return the report of a run as it was written; it may draw itself and do nothing else."""
    if not has_report(parts.workspace, run_id):
        raise RefusedError(
            404,
            "The report of this run was not written yet.",
            fix="Press “Write the report” on the overview.",
        )
    content = parts.workspace.project.store.runs.load_artefact(run_id, REPORT_FILE)
    return HTMLResponse(content, headers={"Content-Security-Policy": REPORT_POLICY})


@router.get("/discoverers")
def show_discoverers(_person: ProjectReader, parts: Parts) -> dict[str, list[MethodChoice]]:
    """List the methods that failures can be looked for with."""
    return {"methods": discoverer_choices(parts.workspace.project.settings)}
