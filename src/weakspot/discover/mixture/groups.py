"""Samples that one mixture is fitted to, with the label and prediction columns it sees."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from weakspot.core.arrays import FloatArray, IntArray
from weakspot.core.dataset import Dataset, Task
from weakspot.core.failures import ClassProblem, Side, predicted_classes, predicted_labels
from weakspot.core.samples import SampleSet
from weakspot.discover.mixture.reduction import with_embedding


@dataclass(frozen=True, kw_only=True, eq=False)
class Group:
    """Samples of one mixture, ordered by label and then by sample id.

    Args:
        problems: the class problems that the samples belong to.
        columns: prediction column of every problem's label.
        rows: rows of the data set [n].
        labels: place of every sample's problem [n], ascending.
        predictions: predicted probabilities [n, q]; one and zeros where only the predicted label is known.
        predicted: column of the predicted label [n].
        n_without: samples of every problem that have no embedding.
    """

    problems: tuple[ClassProblem, ...]
    columns: tuple[int, ...]
    rows: IntArray
    labels: IntArray
    predictions: FloatArray
    predicted: IntArray
    n_without: tuple[int, ...]

    @property
    def title(self) -> str:
        return "\n".join(problem.title for problem in self.problems)

    def known(self, place: int) -> tuple[IntArray, ClassProblem]:
        """Return where the samples of a problem are in the group, and the problem with these samples in this order."""
        problem = self.problems[place]
        places = np.flatnonzero(self.labels == place)
        order = np.argsort(problem.rows)
        found = order[np.searchsorted(problem.rows, self.rows[places], sorter=order)]
        return places, problem.only(found)

    def only(self, places: IntArray) -> "Group":
        """Return the group with some of its samples, in ascending order of place."""
        return replace(
            self,
            rows=self.rows[places],
            labels=self.labels[places],
            predictions=self.predictions[places],
            predicted=self.predicted[places],
        )


def groups_of(
    samples: SampleSet, problems: Sequence[ClassProblem], space: str, *, per_class: bool
) -> Iterator[Group]:
    """Yield one group for every problem (`per_class`), for all of them (single-label) or for every label (multi-label)."""
    bundles: list[tuple[ClassProblem, ...]]
    if per_class:
        bundles = [(problem,) for problem in problems]
    elif samples.dataset.task is Task.SINGLE_LABEL:
        bundles = [tuple(problems)] if problems else []
    else:
        names = dict.fromkeys(problem.class_name for problem in problems)
        bundles = [
            tuple(problem for problem in problems if problem.class_name == name) for name in names
        ]
    for bundle in bundles:
        yield _group(samples, bundle, space)


def _group(samples: SampleSet, problems: tuple[ClassProblem, ...], space: str) -> Group:
    parts = [with_embedding(samples, space, problem.rows) for problem in problems]
    rows = np.concatenate(parts)
    predictions, predicted = _said(samples.dataset, rows, problems[0].class_name)
    return Group(
        problems=problems,
        columns=tuple(_column(samples.dataset, problem) for problem in problems),
        rows=rows,
        labels=np.repeat(np.arange(len(parts)), [len(part) for part in parts]),
        predictions=predictions,
        predicted=predicted,
        n_without=tuple(
            len(problem.rows) - len(part) for problem, part in zip(problems, parts, strict=True)
        ),
    )


def _column(dataset: Dataset, problem: ClassProblem) -> int:
    return (
        dataset.class_code(problem.class_name)
        if problem.side is None
        else int(problem.side is Side.ABSENT)
    )


def _said(dataset: Dataset, rows: IntArray, class_name: str) -> tuple[FloatArray, IntArray]:
    """Return predicted probabilities [n, q] and the column of the predicted label [n]; multi-label: has it, lacks it."""
    if dataset.task is Task.SINGLE_LABEL:
        predicted = predicted_classes(dataset, rows)
        probabilities = (
            None
            if dataset.probabilities is None
            else np.asarray(dataset.probabilities[rows], dtype=np.float32)
        )
        return _one_hot(
            predicted, dataset.n_classes
        ) if probabilities is None else probabilities, predicted
    code = dataset.class_code(class_name)
    predicted = (~predicted_labels(dataset, rows)[:, code]).astype(np.int64)
    if dataset.probabilities is None:
        return _one_hot(predicted, 2), predicted
    positive = np.asarray(dataset.probabilities[rows, code], dtype=np.float32)
    return np.stack([positive, 1.0 - positive], axis=1), predicted


def _one_hot(codes: IntArray, width: int) -> FloatArray:
    return np.asarray(codes[:, None] == np.arange(width), dtype=np.float32)
