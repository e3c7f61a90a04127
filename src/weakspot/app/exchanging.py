"""Handing a project to neighbouring tools, and taking their files: which formats there are, and what an export is given."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

import numpy as np

from weakspot.app.exchange_lists import samples_to_label
from weakspot.app.project import Project
from weakspot.app.reporting import CARD
from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.dataset import Dataset
from weakspot.core.errors import ConfigError, StoreError
from weakspot.core.failures import class_problems
from weakspot.core.run import RunRecord
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.neighbours.bundle import ExchangeBundle, MarkedSlice, Written

EXPORTS: dict[str, str] = {
    "cleanlab": "weakspot.neighbours.cleanlab_files:write_issues",
    "coco": "weakspot.neighbours.coco_files:write_dataset",
    "cvat": "weakspot.neighbours.cvat_files:write_tasks",
    "fiftyone": "weakspot.neighbours.fiftyone_files:write_dataset",
    "huggingface": "weakspot.neighbours.huggingface_files:write_dataset",
    "label-studio": "weakspot.neighbours.label_studio_files:write_tasks",
    "mlflow": "weakspot.neighbours.mlflow_runs:log_run",
    "spotlight": "weakspot.neighbours.spotlight_files:write_table",
    "wandb": "weakspot.neighbours.wandb_runs:log_run",
}
IMPORTS: dict[str, str] = {
    "cleanlab": "weakspot.neighbours.cleanlab_files:read_issues",
    "cvat": "weakspot.neighbours.cvat_reading:read_annotations",
    "fiftyone": "weakspot.neighbours.fiftyone_reading:read_dataset",
    "label-studio": "weakspot.neighbours.label_studio_reading:read_annotations",
    "spotlight": "weakspot.neighbours.spotlight_files:read_table",
}

Export = Callable[..., Written]


@dataclass(frozen=True, kw_only=True)
class ExportCall:
    """What is to be exported.

    Args:
        to: one of `EXPORTS`.
        folder: where files go.
        run_id: the run; None for the newest.
        copies_pictures: whether pictures are copied into the folder instead of being pointed to.
    """

    to: str
    folder: Path
    run_id: str | None = None
    copies_pictures: bool = False


def export_to(project: Project, call: ExportCall) -> Written:
    """Write a project in the format of another tool.

    Raises:
        ConfigError: if there is no such format, or the folder cannot be written.
    """
    write = _function(EXPORTS, call.to)
    bundle = replace(exchange_bundle(project, call.run_id), copies_pictures=call.copies_pictures)
    try:
        call.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"The folder cannot be made: {error.strerror}.", where=str(call.folder)) from error
    written: Written = write(bundle, call.folder)
    return written


def import_from(name: str, source: Path, target: Path) -> Written:
    """Turn the file or folder of another tool into a manifest that `weakspot ingest` or `weakspot repair --labels` reads."""
    read = _function(IMPORTS, name)
    if not source.exists():
        raise ConfigError("There is nothing at this path.", where=str(source), fix="Point to what the other tool exported.")
    written: Written = read(source, target)
    return written


def exchange_bundle(project: Project, run_id: str | None = None) -> ExchangeBundle:
    """Return everything that exports may need."""
    record = _record(project, run_id)
    samples = project.samples(record) if record is not None else _bare_samples(project)
    has_failed, is_judged = _outcomes(samples, project)
    folder = project.store.runs.run_folder(record.run_id) if record is not None else None
    files = sorted(folder.glob("report.*")) if folder is not None else []
    card = folder / CARD if folder is not None else None
    return ExchangeBundle(
        name=project.folder.resolve().name,
        samples=samples,
        record=record,
        slices=_marked(record, samples) if record is not None else (),
        has_failed=has_failed,
        is_judged=is_judged,
        report_files=tuple(files),
        model_card=card.read_text(encoding="utf-8") if card is not None and card.exists() else "",
        settings=project.settings.model_dump(mode="json"),
        to_label=samples_to_label(project, record, samples) if record is not None else (),
    )


def _record(project: Project, run_id: str | None) -> RunRecord | None:
    try:
        return project.run_record(run_id)
    except StoreError:
        if run_id is not None:
            raise
        return None


def _bare_samples(project: Project) -> SampleSet:
    """Return the samples as they were ingested; before the first run nothing is computed for an export."""
    dataset = project.store.dataset()
    return SampleSet(dataset=dataset, rows=np.arange(len(dataset)))


def _outcomes(samples: SampleSet, project: Project) -> tuple[BoolArray, BoolArray]:
    dataset = samples.dataset
    has_failed, is_judged = np.zeros(len(dataset), dtype=np.bool_), np.zeros(len(dataset), dtype=np.bool_)
    if not dataset.has_outcomes:
        return has_failed, is_judged
    labelled = np.flatnonzero(dataset.is_labelled & _has_outcome(dataset))
    for problem in class_problems(dataset, labelled, project.settings.failure.criterion()):
        has_failed[problem.rows[problem.failed]] = True
        is_judged[problem.rows] = True
    return has_failed, is_judged


def _has_outcome(dataset: Dataset) -> BoolArray:
    if dataset.predictions is not None:
        return np.asarray(dataset.predictions >= 0, dtype=np.bool_)
    if dataset.probabilities is not None:
        return np.asarray(np.isfinite(dataset.probabilities).all(axis=1), dtype=np.bool_)
    return np.ones(len(dataset), dtype=np.bool_)


def _marked(record: RunRecord, samples: SampleSet) -> tuple[MarkedSlice, ...]:
    marked: list[MarkedSlice] = []
    used: set[str] = set()
    for found, evidence in record.published():
        tag = _tag(found, used)
        used.add(tag)
        marked.append(MarkedSlice(found=found, evidence=evidence, rows=_members(found, samples), tag=tag))
    return tuple(marked)


def _members(found: FailureSlice, samples: SampleSet) -> IntArray:
    rows = np.sort(found.class_rows(samples))
    return rows[found.rule.members(samples, rows)]


def _tag(found: FailureSlice, used: set[str]) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", found.title.lower()).strip("-") or "slice"
    tag = f"weakspot-{plain}"[:60].rstrip("-")
    return tag if tag not in used else f"{tag[:50]}-{found.slice_id[:8]}"


def _function(table: dict[str, str], name: str) -> Export:
    if name not in table:
        raise ConfigError(f"There is no format {name!r}.", given=name, fix=f"Choose one of {', '.join(table)}.")
    module, _, function = table[name].partition(":")
    found: Export = getattr(import_module(module), function)
    return found
