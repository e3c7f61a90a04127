"""Labels, predictions and slices as the words and numbers that other tools show."""

import math
from collections.abc import Sequence

import numpy as np

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.dataset import SPLIT_ORDER, Dataset, Task
from weakspot.core.failures import predicted_classes, predicted_labels
from weakspot.integrations.bundle import ExchangeBundle, MarkedSlice

Names = list[str] | None


def label_names(dataset: Dataset) -> list[Names]:
    """Return the classes that every sample has by its labels, None where it is unlabelled."""
    if dataset.task is Task.SINGLE_LABEL:
        return [
            [dataset.class_names[code]] if code >= 0 else None for code in dataset.labels.tolist()
        ]
    return _names_of(dataset.label_matrix, dataset.is_labelled, dataset.class_names)


def predicted_names(dataset: Dataset) -> list[Names]:
    """Return the classes that the classifier gave every sample, None where that is not known."""
    if not dataset.has_predictions:
        return [None] * len(dataset)
    rows: IntArray = np.arange(len(dataset))
    is_known = _has_prediction(dataset)
    if dataset.task is Task.MULTI_LABEL:
        return _names_of(predicted_labels(dataset, rows), is_known, dataset.class_names)
    codes = np.where(is_known, predicted_classes(dataset, rows), -1)
    return [[dataset.class_names[code]] if code >= 0 else None for code in codes.tolist()]


def confidences(dataset: Dataset) -> list[float | None]:
    """Return how sure the classifier is of its answer, None where there are no probabilities or several labels."""
    if dataset.probabilities is None or dataset.task is Task.MULTI_LABEL:
        return [None] * len(dataset)
    highest = (
        np.max(np.asarray(dataset.probabilities), axis=1).tolist() if dataset.n_classes else []
    )
    return [None if math.isnan(value) else round(value, 6) for value in highest]


def split_words(dataset: Dataset) -> list[str]:
    return [SPLIT_ORDER[place].value for place in dataset.splits.tolist()]


def sample_tags(bundle: ExchangeBundle) -> list[list[str]]:
    """Return for every sample its split, `failed` if the classifier failed on it, and the tags of its slices."""
    marks = zip(
        split_words(bundle.samples.dataset), bundle.has_failed.tolist(), bundle.tags(), strict=True
    )
    return [[split, *(["failed"] if failed else []), *tags] for split, failed, tags in marks]


def slice_facts(marked: MarkedSlice) -> dict[str, object]:
    found, evidence = marked.found, marked.evidence
    return {
        "tag": marked.tag,
        "title": found.title,
        "class": found.class_name,
        "method": found.method,
        "slice_id": found.slice_id,
        "n_samples": len(marked.rows),
        "measured_on": evidence.measured_on.name,
        "n_inside": evidence.n_inside,
        "failures_inside": evidence.failures_inside,
        "n_outside": evidence.n_outside,
        "failures_outside": evidence.failures_outside,
        "rate_inside": evidence.rate_inside,
        "interval_inside": [evidence.interval_inside.low, evidence.interval_inside.high],
        "rate_outside": evidence.rate_outside,
        "gap": evidence.headline_gap,
        "q_value": evidence.q_value,
        "cause": evidence.named_cause or "",
        "cause_sentence": "" if evidence.cause is None else evidence.cause.sentence,
        "labels_sentence": "" if evidence.labels is None else evidence.labels.sentence,
    }


def slice_sentence(marked: MarkedSlice) -> str:
    evidence = marked.evidence
    return (
        f"{marked.found.title}: fails {evidence.rate_inside:.0%} ({evidence.failures_inside} of {evidence.n_inside}) "
        f"against {evidence.rate_outside:.0%} of the rest of its class, measured on {evidence.measured_on.name}"
    )


def _has_prediction(dataset: Dataset) -> BoolArray:
    if dataset.predictions is not None:
        return np.asarray(dataset.predictions >= 0, dtype=np.bool_)
    if dataset.probabilities is not None:
        return np.asarray(
            np.isfinite(np.asarray(dataset.probabilities)).all(axis=1), dtype=np.bool_
        )
    return np.ones(len(dataset), dtype=np.bool_)


def _names_of(matrix: BoolArray, is_known: BoolArray, class_names: Sequence[str]) -> list[Names]:
    found: list[Names] = []
    for line, known in zip(matrix, is_known.tolist(), strict=True):
        found.append(
            [class_names[code] for code in np.flatnonzero(line).tolist()] if known else None
        )
    return found
