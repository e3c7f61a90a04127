"""The loop as work that pages start: look for failures, repair them, write the report."""

from pydantic import JsonValue

from weakspot.core.run import RunRecord, StageProgress
from weakspot.project.project import Project
from weakspot.repair.stage import RepairRequest
from weakspot.run.settings import with_methods, with_repair
from weakspot.web.services.repair import adopt_files, new_folder
from weakspot.web.services.work import Arguments, RepairArguments, ReportArguments, RunArguments


def preflight(
    project: Project, arguments: Arguments, progress: StageProgress
) -> dict[str, JsonValue]:
    """Say whether data and classifier fit together, before anything long begins."""
    del arguments
    progress("pre-flight", 0, None)
    return {"checks": [check.model_dump(mode="json") for check in project.preflight()]}


def run(project: Project, arguments: Arguments, progress: StageProgress) -> dict[str, JsonValue]:
    """Do the whole loop up to the repair, and say which run came of it."""
    asked = RunArguments.model_validate(arguments)
    opened = Project(
        project.folder, with_methods(project.settings, asked.methods), progress=progress
    )
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


def repair(project: Project, arguments: Arguments, progress: StageProgress) -> dict[str, JsonValue]:
    """Retrain the last layer for chosen slices, measure it beside its baselines, and keep the files that can be downloaded."""
    asked = RepairArguments.model_validate(arguments)
    settings = with_repair(project.settings, method=asked.strategy or "", budget=asked.budget)
    opened = Project(project.folder, settings, progress=progress)
    record = opened.run_record(asked.run)
    folder = new_folder(opened.store, record.run_id)
    request = RepairRequest(
        slice_ids=asked.slice_ids, is_comparison=asked.is_comparison, write_to=folder
    )
    return _figures(adopt_files(opened.store, opened.repair(record.run_id, request)))


def report(project: Project, arguments: Arguments, progress: StageProgress) -> dict[str, JsonValue]:
    """Write the report of a run."""
    asked = ReportArguments.model_validate(arguments)
    progress("report", 0, None)
    record = project.run_record(asked.run)
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
