"""What the ingested samples say of labels, splits, files and, where predictions are known, of the classifier."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import Dataset, Split, Task
from weakspot.core.preflight import PreflightCheck
from weakspot.pipeline.halves import evaluated_splits
from weakspot.pipeline.ingestion import IngestResult
from weakspot.pipeline.preflight.accuracy import check_accuracy
from weakspot.pipeline.preflight.answers import answers_of
from weakspot.pipeline.preflight.class_order import check_class_order
from weakspot.pipeline.preflight.classifier_checks import with_right_names
from weakspot.pipeline.preflight.files import (
    check_conflicts,
    check_files,
    check_groups,
    check_leaks,
)
from weakspot.pipeline.preflight.labels import (
    check_class_counts,
    check_extra_classes,
    check_label_names,
)
from weakspot.pipeline.preflight.near_copies import NearCopies
from weakspot.pipeline.preflight.source_look import SourceLook
from weakspot.pipeline.preflight.splits import check_splits
from weakspot.pipeline.settings import Settings


def check_data(
    dataset: Dataset,
    summary: IngestResult,
    settings: Settings,
    *,
    outputs: Sequence[str] | None = None,
    near: NearCopies | None = None,
) -> tuple[PreflightCheck, ...]:
    """Return every check that needs no image.

    Args:
        dataset: the samples, with predictions as far as they are known.
        summary: what came out of the ingest.
        settings: the project's settings.
        outputs: the classifier's classes in the order of its outputs; None if nobody says them.
        near: which evaluated samples are nearly the same as a training image; None if that was not looked at.
    """
    splits = tuple(split.value for split in evaluated_splits(settings, dataset))
    evaluated = evaluated_rows(dataset, settings)
    counts = _class_counts(dataset, np.flatnonzero(dataset.is_labelled))
    labelled = [name for name, number in counts.items() if number]
    found = [
        check_splits(
            summary.per_split,
            n_dealt=summary.n_dealt,
            configured=settings.verify.splits,
            used=splits,
        ),
        check_label_names({name: counts[name] for name in labelled}, outputs or ()),
        check_class_counts(_only(_class_counts(dataset, evaluated), labelled)),
        check_extra_classes(labelled, dataset.class_names),
        check_files(summary.quarantined, summary.n_samples),
        check_leaks(dataset, evaluated, near),
        check_conflicts(dataset, np.flatnonzero(dataset.is_labelled)),
        check_groups(summary.n_groups, summary.n_groups_across_splits),
        *_of_predictions(dataset, summary, settings, splits, outputs),
    ]
    return tuple(check for check in found if check is not None)


def check_look(look: SourceLook, settings: Settings) -> tuple[PreflightCheck, ...]:
    """Return what can be said of labels and splits before anything was ingested."""
    total: Counter[str] = Counter()
    for counted in look.counts.values():
        total.update(counted)
    if not total:
        return ()
    per_split = {split.value: look.n_of(split) for split in Split}
    configured = settings.verify.splits
    is_there = any(per_split[name] for name in configured) or look.n_of(None)
    used = configured if is_there else (Split.TEST.value,)
    if look.n_of(None):
        per_split["without a split"] = look.n_of(None)
    return (
        check_splits(per_split, n_dealt=look.n_of(None), configured=configured, used=used),
        check_label_names(total, settings.data.class_names),
    )


def evaluated_rows(dataset: Dataset, settings: Settings) -> IntArray:
    """Return the labelled rows that failures are looked for in."""
    rows = dataset.rows_of(*evaluated_splits(settings, dataset))
    return rows[dataset.is_labelled[rows]]


def _of_predictions(
    dataset: Dataset,
    summary: IngestResult,
    settings: Settings,
    splits: tuple[str, ...],
    outputs: Sequence[str] | None,
) -> tuple[PreflightCheck | None, ...]:
    answers = answers_of(dataset, splits)
    if answers is None:
        return ()
    named = tuple(outputs or dataset.class_names)
    check, order = check_class_order(answers, named)
    if check is not None and order is not None:
        check = with_right_names(check, order, named, answers.class_names, settings)
    return check, check_accuracy(answers, is_dealt=summary.n_dealt > 0)


def _class_counts(dataset: Dataset, rows: IntArray) -> dict[str, int]:
    numbers = (
        np.bincount(dataset.labels[rows], minlength=dataset.n_classes)
        if dataset.task is Task.SINGLE_LABEL
        else dataset.label_matrix[rows].sum(axis=0)
    )
    return {name: int(number) for name, number in zip(dataset.class_names, numbers, strict=True)}


def _only(counts: dict[str, int], names: Sequence[str]) -> dict[str, int]:
    return {name: counts[name] for name in names}
