"""The classifier's own predictions beside those of a retrained one, class by class."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import BoolArray, FloatArray, IntArray
from weakspot.core.dataset import GROUP, Dataset, Task, several_to_a_group
from weakspot.core.errors import DataError
from weakspot.core.evidence import sides_of
from weakspot.core.failures import ClassProblem, FailureCriterion, Side, class_problems
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice, matches


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """The measured samples of one class, before and after.

    Args:
        problem: the class as it was before; rows are rows of the data set.
        positions: where these rows stand among the measured samples.
        right_before: which of them were right.
        right_after: which of them are right now.
    """

    problem: ClassProblem
    positions: IntArray
    right_before: BoolArray
    right_after: BoolArray


@dataclass(frozen=True, kw_only=True, eq=False)
class SlicePart:
    """A slice among the measured samples of its class.

    Args:
        found: the slice.
        title: its name, unlike that of any other slice measured with it.
        result: the class, None if none of its samples was measured.
        inside: which samples of the class are members.
        outside: which are not; in neither are those whose membership is not known.
    """

    found: FailureSlice
    title: str
    result: Result | None
    inside: BoolArray
    outside: BoolArray

    @property
    def class_title(self) -> str:
        """Return the class as people read it, for example `no effusion`."""
        return (
            f"no {self.found.class_name}"
            if self.found.side is Side.ABSENT
            else self.found.class_name
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """One arm on one set of samples.

    Args:
        samples: the set.
        predictions: one entry a class (multi-label: two) that has samples.
        parts: one entry a slice, in the order given.
        before: the predictions of the classifier, one row each.
        after: what the retrained one says.
    """

    samples: SampleSet
    predictions: tuple[Result, ...]
    parts: tuple[SlicePart, ...]
    before: Dataset
    after: Dataset

    @property
    def is_multi_label(self) -> bool:
        """Return whether a sample is decided on more than once."""
        return self.before.task is Task.MULTI_LABEL

    @cached_property
    def decision_groups(self) -> IntArray | None:
        """Return the group of every decision, class by class, None if every sample is on its own; a group may be in several classes."""
        groups = several_to_a_group(self.before.groups)
        if groups is None or not self.predictions:
            return None
        positions: IntArray = np.concatenate([one.positions for one in self.predictions])
        return np.asarray(groups[positions], dtype=np.int64)

    @cached_property
    def targets(self) -> IntArray | BoolArray:
        """Return the true class of every sample [n], or its true labels [n, c]."""
        return self.before.label_matrix if self.is_multi_label else self.before.labels


def compare(
    samples: SampleSet,
    probabilities: FloatArray,
    slices: Sequence[FailureSlice],
    criterion: FailureCriterion,
    thresholds: FloatArray | None,
) -> Comparison:
    """Compare predictions on samples that are labelled and have a known result before.

    Who belongs to a slice is decided by its rule, from embeddings and columns; labels only score.

    Args:
        samples: what to measure on.
        probabilities: [n, c] after the repair.
        slices: the slices that were repaired.
        criterion: what counts as a failure.
        thresholds: multi-label thresholds after the repair; the data set's own by default.
    """
    before = _restrict(samples.dataset, samples.rows)
    after = before.with_predictions(
        probabilities=probabilities,
        thresholds=before.thresholds if thresholds is None else thresholds,
    )
    everywhere = np.arange(len(samples))
    predictions = tuple(
        Result(
            problem=replace(first, rows=samples.rows[first.rows]),
            positions=first.rows,
            right_before=~first.failed,
            right_after=~second.failed,
        )
        for first, second in zip(
            class_problems(before, everywhere, criterion),
            class_problems(after, everywhere, criterion),
            strict=True,
        )
    )
    titles = _unique_titles(slices)
    parts = tuple(
        _part(found, title, predictions, samples)
        for found, title in zip(slices, titles, strict=True)
    )
    return Comparison(
        samples=samples, predictions=predictions, parts=parts, before=before, after=after
    )


def is_measurable(samples: SampleSet) -> BoolArray:
    """Return which samples have a label and a known result before."""
    dataset, rows = samples.dataset, samples.rows
    known = dataset.is_labelled[rows]
    return known if dataset.predictions is None else known & (dataset.predictions[rows] >= 0)


def refuse_prediction_rules(slices: Sequence[FailureSlice]) -> None:
    """Refuse slices whose members are defined by predictions: they hold former failures by definition, so any change looks good."""
    circular = [found.title for found in slices if found.rule.reads_predictions]
    if circular:
        raise DataError(
            "A repair cannot be measured on a slice that is defined by predictions.",
            given=circular,
            fix="Repair slices that are defined by images, words or columns.",
        )


def _part(
    found: FailureSlice, title: str, predictions: Sequence[Result], samples: SampleSet
) -> SlicePart:
    result = next((one for one in predictions if matches(found, one.problem)), None)
    sides = sides_of(found, samples, [] if result is None else [result.problem])
    return SlicePart(
        found=found, title=title, result=result, inside=sides.inside, outside=sides.outside
    )


def _restrict(dataset: Dataset, rows: IntArray) -> Dataset:
    """Return labels, groups and predictions of the given rows, in their order."""
    column = "label" if dataset.task is Task.SINGLE_LABEL else "labels"
    columns = [column, "content_hash", *({GROUP} & set(dataset.table.column_names))]
    return replace(
        dataset,
        table=dataset.table.select(columns).take(pa.array(rows)),
        predictions=None if dataset.predictions is None else dataset.predictions[rows],
        predicted_matrix=None
        if dataset.predicted_matrix is None
        else dataset.predicted_matrix[rows],
        probabilities=None
        if dataset.probabilities is None
        else np.asarray(dataset.probabilities[rows]),
    )


def _unique_titles(slices: Sequence[FailureSlice]) -> list[str]:
    titles = [found.title for found in slices]
    return [
        f"{title} ({found.slice_id[:6]})" if titles.count(title) > 1 else title
        for title, found in zip(titles, slices, strict=True)
    ]
