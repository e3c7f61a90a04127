"""Which formats of other tools there are, and what an export is given."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np

from weakspot.core.arrays import BoolArray
from weakspot.core.dataset import Split
from weakspot.core.errors import ConfigError, StoreError
from weakspot.core.failures import class_problems
from weakspot.core.run import RunRecord
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.project.project import Project
from weakspot.repair.labels import LIST_FILE, WHY, chosen_for, read_table
from weakspot.run.halves import used_rows
from weakspot.run.reporting import CARD
from weakspot.run.wiring import build_label_checker
from weakspot.tools.bundle import (
    ExchangeBundle,
    ListedSample,
    MarkedSlice,
    Written,
    has_prediction,
)

MAX_FROM_POOL = 1000


def samples_to_label(
    project: Project, record: RunRecord, samples: SampleSet
) -> tuple[ListedSample, ...]:
    """Return suspect labels of confirmed slices, then what a repair waits for, else unlabelled pool samples inside slices."""
    listed = [
        *_suspects(project, record, samples),
        *(_waiting(project, record, samples) or _pool(record, samples)),
    ]
    return tuple(
        {one.row: one for one in reversed(listed)}[row]
        for row in dict.fromkeys(one.row for one in listed)
    )


def _suspects(project: Project, record: RunRecord, samples: SampleSet) -> Iterator[ListedSample]:
    dataset = samples.dataset
    training = samples.only(dataset.rows_of(Split.TRAIN))
    evaluation = samples.only(used_rows(samples, project.settings))
    criterion = project.settings.failure.criterion()
    for found, evidence in record.published():
        if evidence.labels is None or not evidence.labels.n_suspect:
            continue
        rows = build_label_checker().suspect_rows(
            found, training=training, evaluation=evaluation, criterion=criterion
        )
        for row in rows.tolist():
            yield ListedSample(row=row, why=f"{found.title}: is the label right?")


def _waiting(project: Project, record: RunRecord, samples: SampleSet) -> list[ListedSample]:
    path = project.store.runs.run_folder(record.run_id) / LIST_FILE
    if not path.exists():
        return []
    rows = {name: row for row, name in enumerate(samples.dataset.sample_ids())}
    return [
        ListedSample(row=rows[line.cells["sample_id"]], why=line.cells.get(WHY, ""))
        for line in read_table(path)[1]
        if not line.label and line.cells.get("sample_id", "") in rows
    ]


def _pool(record: RunRecord, samples: SampleSet) -> list[ListedSample]:
    dataset = samples.dataset
    pool = dataset.rows_of(Split.POOL)
    unlabelled = np.asarray(pool[~dataset.is_labelled[pool]], dtype=np.int64)
    titles = chosen_for(unlabelled, record.findings(), samples) if len(unlabelled) else {}
    return [
        ListedSample(row=row, why=title) for row, title in sorted(titles.items())[:MAX_FROM_POOL]
    ]


EXPORTS: dict[str, str] = {
    "cleanlab": "weakspot.tools.cleanlab:write_issues",
    "coco": "weakspot.tools.coco:write_dataset",
    "cvat": "weakspot.tools.cvat:write_tasks",
    "fiftyone": "weakspot.tools.fiftyone:write_dataset",
    "huggingface": "weakspot.tools.huggingface:write_dataset",
    "label-studio": "weakspot.tools.label_studio:write_tasks",
    "mlflow": "weakspot.tools.trackers:log_mlflow_run",
    "spotlight": "weakspot.tools.spotlight:write_table",
    "wandb": "weakspot.tools.trackers:log_wandb_run",
}
IMPORTS: dict[str, str] = {
    "cleanlab": "weakspot.tools.cleanlab:read_issues",
    "cvat": "weakspot.tools.cvat:read_annotations",
    "fiftyone": "weakspot.tools.fiftyone:read_dataset",
    "label-studio": "weakspot.tools.label_studio:read_annotations",
    "spotlight": "weakspot.tools.spotlight:read_table",
}

Export = Callable[..., Written]


def export_to(
    project: Project,
    to: str,
    folder: Path,
    *,
    run_id: str | None = None,
    copies_images: bool = False,
) -> Written:
    """Write a project in the format of another tool.

    Args:
        project: the project.
        to: one of `EXPORTS`.
        folder: where files go.
        run_id: the run; None for the newest.
        copies_images: whether images are copied into the folder instead of being pointed to.

    Raises:
        ConfigError: if there is no such format, or the folder cannot be written.
    """
    _function(EXPORTS, to)
    bundle = replace(exchange_bundle(project, run_id), copies_images=copies_images)
    return write_bundle(bundle, to, folder)


def write_bundle(bundle: ExchangeBundle, to: str, folder: Path) -> Written:
    """Write what was put together in the format of another tool.

    Raises:
        ConfigError: if there is no such format, or the folder cannot be written.
    """
    write = _function(EXPORTS, to)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"The folder cannot be made: {error.strerror}.", where=str(folder)
        ) from error
    written: Written = write(bundle, folder)
    return written


def import_from(name: str, source: Path, target: Path) -> Written:
    """Turn the file or folder of another tool into a manifest that `weakspot ingest` or `weakspot repair --labels` reads."""
    read = _function(IMPORTS, name)
    if not source.exists():
        raise ConfigError(
            "There is nothing at this path.",
            where=str(source),
            fix="Point to what the other tool exported.",
        )
    written: Written = read(source, target)
    return written


def exchange_bundle(project: Project, run_id: str | None = None) -> ExchangeBundle:
    record = _record(project, run_id)
    samples = project.samples(record) if record is not None else _bare_samples(project)
    has_failed, is_judged = _predictions(samples, project)
    folder = project.store.runs.run_folder(record.run_id) if record is not None else None
    files = sorted(folder.glob("report.*")) if folder is not None else []
    card = folder / CARD if folder is not None else None
    return ExchangeBundle(
        name=project.folder.resolve().name,
        samples=samples,
        record=record,
        slices=_mark(record, samples) if record is not None else (),
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


def _predictions(samples: SampleSet, project: Project) -> tuple[BoolArray, BoolArray]:
    dataset = samples.dataset
    has_failed, is_judged = (
        np.zeros(len(dataset), dtype=np.bool_),
        np.zeros(len(dataset), dtype=np.bool_),
    )
    if not dataset.has_predictions:
        return has_failed, is_judged
    labelled = np.flatnonzero(dataset.is_labelled & has_prediction(dataset))
    for problem in class_problems(dataset, labelled, project.settings.failure.criterion()):
        has_failed[problem.rows[problem.failed]] = True
        is_judged[problem.rows] = True
    return has_failed, is_judged


def _mark(record: RunRecord, samples: SampleSet) -> tuple[MarkedSlice, ...]:
    marked: list[MarkedSlice] = []
    used: set[str] = set()
    for found, evidence in record.published():
        tag = _tag(found, used)
        used.add(tag)
        rows = np.sort(found.class_rows(samples))
        members = rows[found.rule.members(samples, rows)]
        marked.append(MarkedSlice(found=found, evidence=evidence, rows=members, tag=tag))
    return tuple(marked)


def _tag(found: FailureSlice, used: set[str]) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", found.title.lower()).strip("-") or "slice"
    tag = f"weakspot-{plain}"[:60].rstrip("-")
    return tag if tag not in used else f"{tag[:50]}-{found.slice_id[:8]}"


def _function(table: dict[str, str], name: str) -> Export:
    if name not in table:
        raise ConfigError(
            f"There is no format {name!r}.", given=name, fix=f"Choose one of {', '.join(table)}."
        )
    module, _, function = table[name].partition(":")
    found: Export = getattr(import_module(module), function)
    return found
