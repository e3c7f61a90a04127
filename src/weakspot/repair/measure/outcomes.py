"""The classifier's own outcomes beside those of a retrained one, class by class."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import BoolArray, FloatArray, IntArray
from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import DataError
from weakspot.core.evidence import sides_of
from weakspot.core.failures import ClassProblem, FailureCriterion, Side, class_problems
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice, matches


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome:
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
        outcome: the class, None if none of its samples was measured.
        inside: which samples of the class are members.
        outside: which are not; in neither are those whose membership cannot be told.
    """

    found: FailureSlice
    title: str
    outcome: Outcome | None
    inside: BoolArray
    outside: BoolArray

    @property
    def class_title(self) -> str:
        """Return the class as people read it, for example `no effusion`."""
        return f"no {self.found.class_name}" if self.found.side is Side.ABSENT else self.found.class_name


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """One arm on one set of samples.

    Args:
        samples: the set.
        outcomes: one entry a class (multi-label: two) that has samples.
        parts: one entry a slice, in the order given.
        before: what the classifier said of the samples, one row each.
        after: what the retrained one says.
    """

    samples: SampleSet
    outcomes: tuple[Outcome, ...]
    parts: tuple[SlicePart, ...]
    before: Dataset
    after: Dataset

    @property
    def is_multi_label(self) -> bool:
        """Return whether a sample is decided on more than once."""
        return self.before.task is Task.MULTI_LABEL

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
    """Compare outcomes on samples that are labelled and have a known outcome before.

    Who belongs to a slice is told by its rule, from vectors and columns; labels only score.

    Args:
        samples: what to measure on.
        probabilities: [n, c] after the repair.
        slices: the slices that were repaired.
        criterion: what counts as a failure.
        thresholds: multi-label thresholds after the repair; the data set's own by default.
    """
    before = _restricted(samples.dataset, samples.rows)
    after = before.with_outcomes(probabilities=probabilities, thresholds=before.thresholds if thresholds is None else thresholds)
    everywhere = np.arange(len(samples))
    outcomes = tuple(
        Outcome(
            problem=replace(first, rows=samples.rows[first.rows]),
            positions=first.rows,
            right_before=~first.failed,
            right_after=~second.failed,
        )
        for first, second in zip(
            class_problems(before, everywhere, criterion), class_problems(after, everywhere, criterion), strict=True
        )
    )
    titles = _unique_titles(slices)
    parts = tuple(_part(found, title, outcomes, samples) for found, title in zip(slices, titles, strict=True))
    return Comparison(samples=samples, outcomes=outcomes, parts=parts, before=before, after=after)


def is_measurable(samples: SampleSet) -> BoolArray:
    """Return which samples have a label and a known outcome before."""
    dataset, rows = samples.dataset, samples.rows
    known = dataset.is_labelled[rows]
    return known if dataset.predictions is None else known & (dataset.predictions[rows] >= 0)


def refuse_outcome_rules(slices: Sequence[FailureSlice]) -> None:
    """Refuse slices whose members are told by outcomes: they hold former failures by definition, so any change looks good."""
    circular = [found.title for found in slices if found.rule.reads_outcomes]
    if circular:
        raise DataError(
            "A repair cannot be measured on a slice that is defined by what the classifier said.",
            given=circular,
            fix="Repair slices that are told by pictures, words or columns.",
        )


def _part(found: FailureSlice, title: str, outcomes: Sequence[Outcome], samples: SampleSet) -> SlicePart:
    outcome = next((one for one in outcomes if matches(found, one.problem)), None)
    sides = sides_of(found, samples, [] if outcome is None else [outcome.problem])
    return SlicePart(found=found, title=title, outcome=outcome, inside=sides.inside, outside=sides.outside)


def _restricted(dataset: Dataset, rows: IntArray) -> Dataset:
    """Return labels and outcomes of the given rows, in their order."""
    column = "label" if dataset.task is Task.SINGLE_LABEL else "labels"
    return replace(
        dataset,
        table=dataset.table.select([column]).take(pa.array(rows)),
        predictions=None if dataset.predictions is None else dataset.predictions[rows],
        predicted_matrix=None if dataset.predicted_matrix is None else dataset.predicted_matrix[rows],
        probabilities=None if dataset.probabilities is None else np.asarray(dataset.probabilities[rows]),
    )


def _unique_titles(slices: Sequence[FailureSlice]) -> list[str]:
    titles = [found.title for found in slices]
    return [
        f"{title} ({found.slice_id[:6]})" if titles.count(title) > 1 else title for title, found in zip(titles, slices, strict=True)
    ]
