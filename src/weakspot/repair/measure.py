"""Before and after, per slice, rest of class, class and overall, on samples that nothing was trained or chosen on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from weakspot.core.arrays import BoolArray, FloatArray, IntArray
from weakspot.core.dataset import Dataset
from weakspot.core.errors import DataError, NotEnoughDataError
from weakspot.core.evidence import Interval
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems
from weakspot.core.repairs import GroupChange, GroupKind, RepairArm
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice, matches
from weakspot.core.statistics import mcnemar_p, wilson_interval


@dataclass(frozen=True, kw_only=True, eq=False)
class ArmAnswers:
    """What a retrained classifier says of the measured samples.

    Args:
        arm: registered name of the strategy, or of the baseline.
        is_baseline: whether it only stands there for comparison.
        note: what was done, in a sentence.
        n_trained: samples trained on.
        probabilities: [n, c] of the measured rows, in their order.
        thresholds: multi-label decision threshold of every class [c]; the data set's own by default.
    """

    arm: str
    is_baseline: bool
    note: str
    n_trained: int
    probabilities: FloatArray
    thresholds: FloatArray | None = None


def untouched(samples: SampleSet, used: Sequence[IntArray]) -> SampleSet:
    """Return the labelled samples with a known outcome whose picture is not among the used rows, each picture once.

    Args:
        samples: what to measure on.
        used: rows that were trained on, or that slices were found, confirmed or thresholded on.

    Raises:
        DataError: if a used row is itself to be measured on.
        NotEnoughDataError: if nothing is left.
    """
    dataset, rows = samples.dataset, samples.rows
    taken = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *used]))
    if np.isin(rows, taken).any():
        raise DataError(
            "A repair cannot be measured on samples that were used to make it.",
            where=samples.name,
            given=f"{int(np.isin(rows, taken).sum())} of {len(rows)} samples",
            fix="Measure on the test split.",
        )
    seen = set(dataset.content_hashes(taken))
    fresh = np.array([content not in seen for content in dataset.content_hashes(rows)], dtype=np.bool_)
    known = dataset.is_labelled[rows] & fresh
    if dataset.predictions is not None:
        known &= dataset.predictions[rows] >= 0
    kept = rows[known]
    kept = np.sort(kept[np.unique(dataset.content_hashes(kept), return_index=True)[1]]) if len(kept) else kept
    if not len(kept):
        raise NotEnoughDataError("No labelled sample is left to measure the repair on.", where=samples.name)
    n_repeated = len(rows) - int(fresh.sum())
    return samples.only(kept, name=f"{samples.name} (repeated pictures left out: {n_repeated})" if n_repeated else samples.name)


def measure_arm(answers: ArmAnswers, slices: Sequence[FailureSlice], samples: SampleSet, criterion: FailureCriterion) -> RepairArm:
    """Compare the classifier's own outcomes with those of one arm on the same samples."""
    if len(answers.probabilities) != len(samples):
        raise DataError(
            "There must be one row of probabilities for every measured sample.",
            given=(len(answers.probabilities), len(samples)),
        )
    before = _restricted(samples.dataset, samples.rows)
    if before.predictions is not None and np.any(before.predictions < 0):
        raise DataError(
            "Some measured samples have no prediction before.", fix="Take what weakspot.repair.measure.untouched gives."
        )
    thresholds = before.thresholds if answers.thresholds is None else answers.thresholds
    after = before.with_outcomes(probabilities=answers.probabilities, thresholds=thresholds)
    positions = np.arange(len(samples))
    outcomes = [
        _Outcome(problem=first, failed_after=second.failed)
        for first, second in zip(
            class_problems(before, positions, criterion), class_problems(after, positions, criterion), strict=True
        )
    ]
    changes = tuple(_changes(outcomes, slices, samples))
    return RepairArm(
        arm=answers.arm,
        is_baseline=answers.is_baseline,
        note=answers.note,
        n_trained=answers.n_trained,
        changes=changes,
        got_worse=tuple(change.group for change in changes if change.right_after < change.right_before),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Outcome:
    """One class before and after; rows of the problem are positions among the measured samples."""

    problem: ClassProblem
    failed_after: BoolArray


def _changes(outcomes: Sequence[_Outcome], slices: Sequence[FailureSlice], samples: SampleSet) -> Iterator[GroupChange]:
    every_before = np.concatenate([one.problem.failed for one in outcomes])
    every_after = np.concatenate([one.failed_after for one in outcomes])
    yield _change("overall", GroupKind.OVERALL, ~every_before, ~every_after)
    titles = _unique_titles(slices)
    for found, title in zip(slices, titles, strict=True):
        one = next((outcome for outcome in outcomes if matches(found, outcome.problem)), None)
        if one is None:
            continue
        rows = samples.rows[one.problem.rows]
        inside = found.rule.members(samples, rows)
        outside = ~inside & np.isfinite(found.rule.scores(samples, rows))
        right_before, right_after = ~one.problem.failed, ~one.failed_after
        yield _change(title, GroupKind.SLICE, right_before[inside], right_after[inside])
        rest = f"{one.problem.title}: the rest" if len(slices) == 1 else f"{one.problem.title}: all but “{title}”"
        yield _change(rest, GroupKind.COMPLEMENT, right_before[outside], right_after[outside])
    for one in outcomes:
        yield _change(one.problem.title, GroupKind.CLASS, ~one.problem.failed, ~one.failed_after)


def _change(group: str, kind: GroupKind, right_before: BoolArray, right_after: BoolArray) -> GroupChange:
    gained = int(np.sum(~right_before & right_after))
    lost = int(np.sum(right_before & ~right_after))
    n_samples, n_before, n_after = len(right_before), int(right_before.sum()), int(right_after.sum())
    before, after = wilson_interval(n_before, n_samples), wilson_interval(n_after, n_samples)
    return GroupChange(
        group=group,
        kind=kind,
        n_samples=n_samples,
        right_before=n_before,
        right_after=n_after,
        gained=gained,
        lost=lost,
        interval_before=Interval(low=before[0], high=before[1]),
        interval_after=Interval(low=after[0], high=after[1]),
        p_value=mcnemar_p(gained, lost),
    )


def _restricted(dataset: Dataset, rows: IntArray) -> Dataset:
    """Return the data set with only the given rows, in their order."""
    return replace(
        dataset,
        table=dataset.table.take(pa.array(rows)),
        predictions=None if dataset.predictions is None else dataset.predictions[rows],
        predicted_matrix=None if dataset.predicted_matrix is None else dataset.predicted_matrix[rows],
        probabilities=None if dataset.probabilities is None else dataset.probabilities[rows],
    )


def _unique_titles(slices: Sequence[FailureSlice]) -> list[str]:
    titles = [found.title for found in slices]
    return [
        f"{title} ({found.slice_id[:6]})" if titles.count(title) > 1 else title for title, found in zip(titles, slices, strict=True)
    ]
