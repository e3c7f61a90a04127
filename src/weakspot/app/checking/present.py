"""The run that belongs to the present samples, model and settings; made if there is none."""

from collections.abc import Mapping
from dataclasses import dataclass

from weakspot.app.config import Settings
from weakspot.app.ingesting import IngestSummary
from weakspot.app.preparation import EmbedSummary
from weakspot.app.project import Project
from weakspot.app.wiring import build_classifier
from weakspot.core.errors import StoreError
from weakspot.core.run import RunRecord

INDIFFERENT_SECTIONS = ("engine", "repair", "generator", "search", "report")
"""Settings that findings do not depend on: where work runs, and what is done with findings afterwards."""


@dataclass(frozen=True, kw_only=True)
class EnsuredRun:
    """A run of the present samples, model and settings.

    Args:
        record: the run.
        is_new: whether it was made now.
        ingested: what the ingest brought.
        embedded: what was computed for it now.
    """

    record: RunRecord
    is_new: bool
    ingested: IngestSummary
    embedded: EmbedSummary


def chosen_run(project: Project, run_id: str, *, may_run: bool) -> RunRecord:
    """Return the run of an id or, without one, that of the present samples, model and settings.

    Raises:
        StoreError: if there is none and none may be made, or its slices were not measured.
    """
    if not run_id:
        return ensured_run(project).record if may_run else stored_run(project)
    record = project.run_record(run_id)
    if not is_finished(record):
        raise StoreError("The slices of the run have not been measured yet.", where=run_id, fix=f"weakspot verify --run {run_id}")
    return record


def ensured_run(project: Project) -> EnsuredRun:
    """Return the run of the present samples, model and settings; only what is missing is computed."""
    ingested = project.ingest()
    prepared = project.prepared()
    record = newest_of(project, prepared.inputs)
    is_new = record is None
    if record is None:
        record = project.verify(project.discover().run_id)
    return EnsuredRun(record=record, is_new=is_new, ingested=ingested, embedded=prepared.summary)


def stored_run(project: Project) -> RunRecord:
    """Return the newest stored run of the present settings and model, without computing anything.

    Raises:
        StoreError: if there is none.
    """
    tables = project.store.current_tables()
    classifier = build_classifier(project.settings.classifier, project.folder)
    known = {"samples": tables.folder.name if tables else "", "classifier": classifier.classifier_id if classifier else ""}
    record = newest_of(project, {name: value for name, value in known.items() if value})
    if record is None:
        said = "of the present samples, model and settings" if project.store.runs.run_ids() else "yet"
        raise StoreError(
            f"The project has no finished run {said}.",
            where=str(project.folder),
            fix="Run `weakspot run` first, or leave out --no-run.",
        )
    return record


def newest_of(project: Project, inputs: dict[str, str]) -> RunRecord | None:
    """Return the newest finished run with these inputs and the project's settings, None if there is none."""
    wanted = decisive(project.settings)
    for run_id in reversed(project.store.runs.run_ids()):
        record = project.store.runs.load(run_id)
        is_same = all(record.inputs.get(name) == value for name, value in inputs.items())
        if is_same and is_finished(record) and _without_indifferent(record.settings) == wanted:
            return record
    return None


def is_finished(record: RunRecord) -> bool:
    """Return whether every slice of a run was measured."""
    return record.classifier is not None and len(record.evidence) == len(record.slices)


def decisive(settings: Settings) -> dict[str, object]:
    """Return the settings that findings depend on."""
    return _without_indifferent(settings.model_dump(mode="json"))


def _without_indifferent(settings: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in settings.items() if name not in INDIFFERENT_SECTIONS}
