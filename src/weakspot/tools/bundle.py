"""What is handed to another tool: samples, predictions, confirmed slices and embeddings, and the words that tools show."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from weakspot.core.arrays import BoolArray, FloatArray, IntArray
from weakspot.core.dataset import SPLIT_ORDER, Dataset, Task
from weakspot.core.evidence import Evidence
from weakspot.core.failures import predicted_classes, predicted_labels
from weakspot.core.run import RunRecord
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice


@dataclass(frozen=True, kw_only=True, eq=False)
class MarkedSlice:
    """A confirmed slice with the samples that its rule takes in, of every split.

    Args:
        found: the slice.
        evidence: what was measured on the confirmation half.
        rows: rows of the data set [m], ascending.
        tag: short name for other tools, without blanks: `weakspot-apple-green`. Different slices have different tags.
    """

    found: FailureSlice
    evidence: Evidence
    rows: IntArray
    tag: str


@dataclass(frozen=True, kw_only=True)
class ListedSample:
    """A sample that a person should label, or whose label a person should look at.

    Args:
        row: row of the data set.
        why: one line for the person who labels.
        suggested: what a person says it is, to start from; the classifier's answer if empty.
    """

    row: int
    why: str
    suggested: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class ExchangeBundle:
    """Everything that exports may need; nothing is computed by them.

    Args:
        name: of the project.
        samples: all samples; `samples.dataset` has labels, predictions and columns, `samples.spaces` embeddings.
        record: the run that is exported, or None when there is none yet.
        slices: its confirmed slices that nobody dismissed, largest gap first.
        has_failed: whether the classifier failed on a sample [n]; False where that is not known.
        is_judged: whether that is known [n].
        report_files: files of the report of the run, if it was written.
        model_card: Markdown of the model card, empty if there is no run.
        settings: all settings of the project as plain values.
        to_label: what people should look at: suspect labels of confirmed slices first, then pool samples without a label.
        copies_images: whether images are copied into the export instead of being pointed to.
    """

    name: str
    samples: SampleSet
    record: RunRecord | None
    slices: tuple[MarkedSlice, ...]
    has_failed: BoolArray
    is_judged: BoolArray
    report_files: tuple[Path, ...] = ()
    model_card: str = ""
    settings: Mapping[str, object] = field(default_factory=dict)
    to_label: tuple[ListedSample, ...] = ()
    copies_images: bool = False

    def tags(self) -> list[list[str]]:
        found: list[list[str]] = [[] for _ in range(len(self.samples.dataset))]
        for marked in self.slices:
            for row in marked.rows.tolist():
                found[row].append(marked.tag)
        return found

    def embeddings(self) -> FloatArray | None:
        """Return the embeddings that phrases can be compared with [n, d], else the classifier's own, else None."""
        spaces = self.samples.spaces
        chosen = spaces.get("clip") or next(iter(spaces.values()), None)
        return None if chosen is None else np.asarray(chosen.embeddings)


@dataclass(frozen=True, kw_only=True)
class Written:
    """What an export wrote.

    Args:
        files: the most useful one first.
        sentence: what to do with it, with the line to type.
    """

    files: tuple[Path, ...]
    sentence: str


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
    is_known = has_prediction(dataset)
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


def has_prediction(dataset: Dataset) -> BoolArray:
    """Return of which samples the classifier's answer is known [n]."""
    if dataset.predictions is not None:
        return np.asarray(dataset.predictions >= 0, dtype=np.bool_)
    if dataset.probabilities is not None:
        return np.asarray(
            np.isfinite(np.asarray(dataset.probabilities)).all(axis=1), dtype=np.bool_
        )
    return np.ones(len(dataset), dtype=np.bool_)


def _names_of(matrix: BoolArray, is_known: BoolArray, class_names: Sequence[str]) -> list[Names]:
    return [
        [class_names[code] for code in np.flatnonzero(line).tolist()] if known else None
        for line, known in zip(matrix, is_known.tolist(), strict=True)
    ]
