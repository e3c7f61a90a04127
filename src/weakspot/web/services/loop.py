"""The loop as work that pages start: look for failures, repair them, write the report."""

from typing import Annotated

from pydantic import Field, JsonValue

from weakspot.core.run import RunRecord, StageProgress
from weakspot.project.project import Project
from weakspot.repair.stage import RepairRequest
from weakspot.run.settings import with_methods, with_repair
from weakspot.web.services.repair import adopt_files, new_folder
from weakspot.web.services.work import Identifier, PartName


def preflight(project: Project, progress: StageProgress) -> dict[str, JsonValue]:
    """Say whether data and classifier fit together, before anything long begins."""
    progress("pre-flight", 0, None)
    return {"checks": [check.model_dump(mode="json") for check in project.preflight()]}


def run(
    project: Project,
    progress: StageProgress,
    *,
    methods: Annotated[tuple[PartName, ...], Field(max_length=50)] = (),
) -> dict[str, JsonValue]:
    """Do the whole loop up to the repair, and say which run came of it.

    Args:
        project: the project.
        progress: called with the stage.
        methods: registered discoverers, or `all`; those of weakspot.toml if empty.
    """
    opened = Project(project.folder, with_methods(project.settings, methods), progress=progress)
    if opened.store.current_tables() is None:
        # The first time, models see the images in the same pass that reads them.
        record = opened.run()
        opened.report(record.run_id)
        return _figures(record)
    opened.ingest()
    progress("discover", 0, None)
    record = _half_done(opened) or opened.discover()
    progress("verify", 0, None)
    opened.verify(record.run_id)
    progress("repair", 0, None)
    return _figures(opened.repair(record.run_id, RepairRequest(is_required=False)))


def repair(
    project: Project,
    progress: StageProgress,
    *,
    run: Identifier | None = None,
    slice_ids: Annotated[tuple[Identifier, ...], Field(max_length=200)] = (),
    strategy: PartName | None = None,
    is_comparison: bool = False,
    budget: Annotated[int, Field(ge=0, le=10_000_000)] | None = None,
) -> dict[str, JsonValue]:
    """Retrain the last layer for chosen slices, measure it beside its baselines, and keep the files that can be downloaded.

    Args:
        project: the project.
        progress: called with the stage.
        run: the newest if none is named.
        slice_ids: confirmed slices; all of them that no other explains if empty.
        strategy: a registered repairer; the one of weakspot.toml if none is named.
        is_comparison: run every strategy that the samples allow.
        budget: samples that may be taken from the pool; as in weakspot.toml if None.
    """
    settings = with_repair(project.settings, method=strategy or "", budget=budget)
    opened = Project(project.folder, settings, progress=progress)
    record = opened.run_record(run)
    folder = new_folder(opened.store, record.run_id)
    request = RepairRequest(slice_ids=slice_ids, is_comparison=is_comparison, write_to=folder)
    return _figures(adopt_files(opened.store, opened.repair(record.run_id, request)))


def report(
    project: Project, progress: StageProgress, *, run: Identifier | None = None
) -> dict[str, JsonValue]:
    """Write the report of a run, the newest by default."""
    progress("report", 0, None)
    record = project.run_record(run)
    files = project.report(record.run_id)
    return {"run_id": record.run_id, "files": [path.name for path in files]}


def _half_done(project: Project) -> RunRecord | None:
    """Return the newest run if it was interrupted between finding slices and proving them, and would come out the same."""
    record = project.store.runs.latest()
    if record is None or record.evidence or record.decisions:
        return None
    is_same = (
        record.settings == project.settings.model_dump(mode="json")
        and record.inputs == project.prepared().inputs
    )
    return record if is_same else None


def _figures(record: RunRecord) -> dict[str, JsonValue]:
    n_repairs = sum(bool(result.arms) for result in record.repairs)
    return {
        "run_id": record.run_id,
        "n_slices": len(record.slices),
        "n_published": len(record.published()),
        "n_repairs": n_repairs,
    }
