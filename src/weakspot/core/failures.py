"""What counts as a failure, the label hierarchy that may forgive it, and the per-class problems that follow."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from weakspot.core.bounds import Count, PositiveFraction, check_bounds
from weakspot.core.dataset import Dataset, Task, several_to_a_group
from weakspot.core.errors import DataError
from weakspot.core.group_tests import effective_number


@dataclass(frozen=True, kw_only=True)
class LabelHierarchy:
    """Parents of labels, as a mapping from child to parent; a label without a parent is its own.

    >>> tree = LabelHierarchy(parents={"robin": "bird", "crow": "bird"})
    >>> tree.parent("robin"), tree.parent("trout")
    ('bird', 'trout')
    """

    parents: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for label in self.parents:
            seen = {label}
            step = self.parents.get(label)
            while step is not None:
                if step in seen:
                    raise DataError(
                        "The label hierarchy runs in a circle.",
                        where=f"label {label!r}",
                        given=dict(self.parents),
                    )
                seen.add(step)
                step = self.parents.get(step)

    def parent(self, label: str) -> str:
        return self.parents.get(label, label)

    def parent_codes(self, class_names: tuple[str, ...]) -> IntArray:
        """Return for every class the number of its parent group [c]."""
        names = [self.parent(name) for name in class_names]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        return np.array([numbers[name] for name in names], dtype=np.int64)


FailureKind = Literal["top-1", "top-k", "parent", "low-confidence", "target"]


class Side(StrEnum):
    """Which half of a multi-label class is meant: samples that have the label, or samples that lack it."""

    PRESENT = "present"
    ABSENT = "absent"


@dataclass(frozen=True, kw_only=True)
class FailureCriterion:
    """When a prediction counts as a failure.

    Args:
        kind: `top-1` predicted label wrong; `top-k` true label not among the k likeliest; `parent` none of the k likeliest under
            the same parent as the true label; `low-confidence` probability of the true label below `threshold`; `target` predicted
            as the class `target` although that is not the true label.
        k: for `top-k` and `parent`.
        threshold: for `low-confidence`.
        target: for `target`.
        hierarchy: for `parent`.
    """

    kind: FailureKind = "top-1"
    k: Count = 1
    threshold: PositiveFraction = 0.5
    target: str | None = None
    hierarchy: LabelHierarchy = field(default_factory=LabelHierarchy)

    def __post_init__(self) -> None:
        unnamed = self.kind == "target" and not self.target
        problem = "The failure kind 'target' needs the setting failure.target: name one class."
        check_bounds(self, where="failure", problems=[problem] if unnamed else [])

    def failed(self, dataset: Dataset, rows: IntArray) -> BoolArray:
        """Return which of the rows failed [len(rows)]; single-label only, labelled rows only."""
        labels = dataset.labels[rows]
        if self.kind in ("top-1", "target"):
            return self._wrong(predicted_classes(dataset, rows), labels, dataset.class_names)
        probabilities = probabilities_of(dataset, rows, purpose=f"the failure kind {self.kind!r}")
        return self.failed_predictions(probabilities, labels, dataset.class_names)

    def failed_predictions(
        self, probabilities: FloatArray, labels: IntArray, class_names: Sequence[str]
    ) -> BoolArray:
        """Return which predictions [n, c] of samples with these labels [n] are failures [n]; single-label only."""
        if self.kind in ("top-1", "target"):
            return self._wrong(np.argmax(probabilities, axis=1), labels, class_names)
        if self.kind == "low-confidence":
            return np.less(probabilities[np.arange(len(labels)), labels], self.threshold)
        if self.kind == "top-k":
            return np.greater_equal(_ranks(probabilities, labels), self.k)
        likeliest = top_classes(probabilities, min(self.k, len(class_names)))
        parents = self.hierarchy.parent_codes(tuple(class_names))
        return np.asarray(
            np.all(parents[likeliest] != parents[labels][:, None], axis=1), dtype=np.bool_
        )

    def _wrong(
        self, predicted: IntArray, labels: IntArray, class_names: Sequence[str]
    ) -> BoolArray:
        if self.kind == "top-1":
            return np.not_equal(predicted, labels)
        if self.target not in class_names:
            raise DataError(
                f"There is no class {self.target!r}.",
                given=self.target,
                fix=f"Choose one of {list(class_names)[:20]}.",
            )
        target = list(class_names).index(self.target or "")
        return np.asarray((predicted == target) & (labels != target), dtype=np.bool_)


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassProblem:
    """The labelled rows of one class and how the classifier did on them.

    Args:
        class_name: the true class.
        side: for multi-label tasks, whether the rows have or lack the label; None otherwise.
        rows: rows of the data set.
        failed: which of them failed.
        confidence: probability that the classifier gave to the truth, NaN where unknown.
        groups: number of the group of every row; None if every row is a group of its own.
    """

    class_name: str
    side: Side | None
    rows: IntArray
    failed: BoolArray
    confidence: FloatArray
    groups: IntArray | None = None

    @property
    def title(self) -> str:
        """Return the class as people read it, for example `no effusion`."""
        return f"no {self.class_name}" if self.side is Side.ABSENT else self.class_name

    @property
    def n_failed(self) -> int:
        return int(self.failed.sum())

    @property
    def n_right(self) -> int:
        """Return the number of rows that did not fail."""
        return int(len(self.failed) - self.failed.sum())

    @property
    def worth(self) -> float:
        """Return how many independent samples a row is worth on average, less than 1 where rows come in groups."""
        everybody = np.ones(len(self.rows), dtype=np.bool_)
        return (
            1.0
            if self.groups is None
            else effective_number(self.groups, everybody) / len(self.rows)
        )

    def only(self, places: IntArray) -> "ClassProblem":
        """Return some of the rows, in the order given; groups stay the same."""
        return replace(
            self,
            rows=self.rows[places],
            failed=self.failed[places],
            confidence=self.confidence[places],
            groups=None if self.groups is None else several_to_a_group(self.groups[places]),
        )


def class_problems(
    dataset: Dataset, rows: IntArray, criterion: FailureCriterion
) -> tuple[ClassProblem, ...]:
    """Split labelled rows into one problem per class (single-label) or two per label (multi-label: has it, lacks it)."""
    if not dataset.has_predictions:
        raise DataError(
            "Nothing is known of what the classifier said.",
            fix="Give a classifier, predictions or probabilities.",
        )
    labelled = rows[dataset.is_labelled[rows]]
    build = _single_label_problems if dataset.task is Task.SINGLE_LABEL else _multi_label_problems
    problems = tuple(
        problem for problem in build(dataset, labelled, criterion) if len(problem.rows)
    )
    if several_to_a_group(dataset.groups[labelled]) is None:
        return problems
    return tuple(
        replace(problem, groups=several_to_a_group(dataset.groups[problem.rows]))
        for problem in problems
    )


def unjudged_classes(dataset: Dataset, rows: IntArray) -> tuple[ClassProblem, ...]:
    """Split labelled rows as `class_problems` does, without asking what the classifier said: nothing counts as a failure."""
    labelled = rows[dataset.is_labelled[rows]]
    if dataset.task is Task.SINGLE_LABEL:
        parts: list[tuple[str, Side | None, IntArray]] = [
            (name, None, labelled[dataset.labels[labelled] == code])
            for code, name in enumerate(dataset.class_names)
        ]
    else:
        parts = [
            (name, side, labelled[dataset.label_matrix[labelled, code] == (side is Side.PRESENT)])
            for code, name in enumerate(dataset.class_names)
            for side in Side
        ]
    return tuple(
        ClassProblem(
            class_name=name,
            side=side,
            rows=own,
            failed=np.zeros(len(own), dtype=np.bool_),
            confidence=np.full(len(own), np.nan, dtype=np.float32),
        )
        for name, side, own in parts
        if len(own)
    )


def _single_label_problems(
    dataset: Dataset, rows: IntArray, criterion: FailureCriterion
) -> Iterator[ClassProblem]:
    if dataset.predictions is not None:
        rows = rows[dataset.predictions[rows] >= 0]
    failed = criterion.failed(dataset, rows)
    labels = dataset.labels[rows]
    confidence = np.full(len(rows), np.nan, dtype=np.float32)
    if dataset.probabilities is not None:
        confidence = np.asarray(dataset.probabilities[rows, labels], dtype=np.float32)
    for code, name in enumerate(dataset.class_names):
        chosen = labels == code
        yield ClassProblem(
            class_name=name,
            side=None,
            rows=rows[chosen],
            failed=failed[chosen],
            confidence=confidence[chosen],
        )


def _multi_label_problems(
    dataset: Dataset, rows: IntArray, criterion: FailureCriterion
) -> Iterator[ClassProblem]:
    if criterion.kind in ("top-k", "parent"):
        raise DataError(
            f"The failure kind {criterion.kind!r} is for single-label tasks.",
            fix="Choose top-1, low-confidence or target.",
        )
    # Labels are taken one by one: by columns that is several times faster.
    truth, said = (
        np.asfortranarray(dataset.label_matrix[rows]),
        np.asfortranarray(predicted_labels(dataset, rows)),
    )
    names = (
        [criterion.target]
        if criterion.kind == "target" and criterion.target
        else list(dataset.class_names)
    )
    for name in names:
        code = dataset.class_code(name)
        confidence = _confidence_in_truth(dataset, rows, code, truth[:, code])
        failed = said[:, code] != truth[:, code]
        if criterion.kind == "low-confidence":
            failed = confidence < criterion.threshold
        for side, chosen in ((Side.PRESENT, truth[:, code]), (Side.ABSENT, ~truth[:, code])):
            if criterion.kind == "target" and side is Side.PRESENT:
                continue
            yield ClassProblem(
                class_name=name,
                side=side,
                rows=rows[chosen],
                failed=failed[chosen],
                confidence=confidence[chosen],
            )


def _confidence_in_truth(
    dataset: Dataset, rows: IntArray, code: int, truth: BoolArray
) -> FloatArray:
    if dataset.probabilities is None:
        return np.full(len(rows), np.nan, dtype=np.float32)
    positive = np.asarray(dataset.probabilities[rows, code], dtype=np.float32)
    return np.where(truth, positive, 1.0 - positive).astype(np.float32)


def predicted_classes(dataset: Dataset, rows: IntArray) -> IntArray:
    """Return the predicted class of every row; from predictions, else the likeliest class."""
    if dataset.predictions is not None:
        return dataset.predictions[rows]
    return np.asarray(
        np.argmax(probabilities_of(dataset, rows, purpose="a predicted class"), axis=1),
        dtype=np.int64,
    )


def predicted_labels(dataset: Dataset, rows: IntArray) -> BoolArray:
    """Return which labels were predicted [len(rows), c] in a multi-label task."""
    if dataset.predicted_matrix is not None:
        return dataset.predicted_matrix[rows]
    probabilities = probabilities_of(dataset, rows, purpose="predicted labels")
    thresholds = (
        dataset.thresholds
        if dataset.thresholds is not None
        else np.full(dataset.n_classes, 0.5, dtype=np.float32)
    )
    return np.greater_equal(probabilities, thresholds[None, :])


def probabilities_of(dataset: Dataset, rows: IntArray, *, purpose: str) -> FloatArray:
    """Return probabilities of the rows [len(rows), c]."""
    if dataset.probabilities is None:
        raise DataError(
            f"Probabilities are needed for {purpose}.",
            fix="Give a classifier, or probability columns in the manifest.",
        )
    return np.asarray(dataset.probabilities[rows], dtype=np.float32)


def top_classes(probabilities: FloatArray, k: int) -> IntArray:
    """Return the k likeliest classes of every row [n, k], likeliest first; ties go to the lower class number."""
    return np.argsort(-probabilities, axis=1, kind="stable")[:, :k]


def _ranks(probabilities: FloatArray, labels: IntArray) -> IntArray:
    """Return how many classes come before the true one in the order of `top_classes`, without sorting; NaN comes last."""
    own = probabilities[np.arange(len(labels)), labels][:, None]
    if np.isnan(own).any():
        probabilities, own = (
            np.where(np.isnan(values), -np.inf, values) for values in (probabilities, own)
        )
    n_likelier = np.count_nonzero(probabilities > own, axis=1)
    is_equal = probabilities == own
    is_tied = np.flatnonzero(np.count_nonzero(is_equal, axis=1) > 1)
    is_earlier = np.arange(probabilities.shape[1])[None, :] < labels[is_tied, None]
    n_likelier[is_tied] += np.count_nonzero(is_equal[is_tied] & is_earlier, axis=1)
    return np.asarray(n_likelier, dtype=np.int64)


def best_f1_thresholds(probabilities: FloatArray, truth: BoolArray) -> FloatArray:
    """Return for every label [c] the threshold with the best F1 on labelled rows; 0.5 for a label that never occurs.

    >>> best_f1_thresholds(np.array([[0.1], [0.3], [0.4]], dtype=np.float32), np.array([[False], [True], [True]])).round(2).tolist()
    [0.30000001192092896]
    """
    columns = [
        _best_f1_threshold(probabilities[:, code], truth[:, code]) for code in range(truth.shape[1])
    ]
    return np.array(columns, dtype=np.float32)


def _best_f1_threshold(scores: AnyArray, truth: AnyArray) -> float:
    if not truth.any():
        return 0.5
    order = np.argsort(-scores, kind="stable")
    ranked, hits = scores[order], np.cumsum(truth[order])
    f1 = 2 * hits / (np.arange(1, len(hits) + 1) + truth.sum())
    f1[:-1][ranked[:-1] == ranked[1:]] = -1.0
    return float(ranked[int(np.argmax(f1))])


def describe_criterion(criterion: FailureCriterion) -> str:
    """Return the criterion as a sentence for reports."""
    sentences: dict[str, str] = {
        "top-1": "the predicted label is not the true one",
        "top-k": f"the true label is not among the {criterion.k} likeliest",
        "parent": f"none of the {criterion.k} likeliest labels shares the true label's parent",
        "low-confidence": f"the true label gets a probability below {criterion.threshold:g}",
        "target": f"the sample is taken for {criterion.target!r}",
    }
    return sentences[criterion.kind]
