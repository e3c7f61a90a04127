"""Before and after, on samples that nothing was trained or chosen on: every arm is measured here, in the same way."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.arrays import BoolArray, FloatArray, IntArray
from weakspot.core.dataset import Dataset, several_to_a_group
from weakspot.core.errors import DataError, NotEnoughDataError
from weakspot.core.evidence import Interval
from weakspot.core.failures import FailureCriterion
from weakspot.core.group_tests import (
    effective_number,
    group_change_interval,
    group_interval,
    paired_group_p,
)
from weakspot.core.repairs import ArmMeasurement, GroupChange, GroupKind, RepairArm
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.core.statistics import calibration_error, mcnemar_ps, wilson_intervals
from weakspot.repair.spread import (
    Comparison,
    Result,
    SlicePart,
    compare,
    given_groups,
    is_measurable,
    measure_given,
    own_groups,
    refuse_prediction_rules,
    spread_of,
)


def untouched(samples: SampleSet, used: Sequence[IntArray]) -> SampleSet:
    """Return the labelled samples with a known result whose image is not among the used rows, each image once.

    Images that belong to a group of a used row are left out too, unless that would leave none.

    Args:
        samples: what to measure on.
        used: rows that were trained on, or that slices were found, confirmed or thresholded on.

    Raises:
        DataError: if a used row is itself to be measured on.
        NotEnoughDataError: if nothing is left.
    """
    dataset, rows = samples.dataset, samples.rows
    taken = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *used]))
    is_taken = np.isin(rows, taken)
    if is_taken.any():
        raise DataError(
            "A repair cannot be measured on samples that were used to make it.",
            where=samples.name,
            given=f"{int(is_taken.sum())} of {len(rows)} samples",
            fix="Measure on the test split.",
        )
    is_fresh = ~is_image_of(dataset, rows, taken)
    left_out = "repeated images"
    is_apart = is_fresh & ~np.isin(dataset.groups[rows], dataset.groups[taken])
    if (is_apart & is_measurable(samples)).any() and not np.array_equal(is_apart, is_fresh):
        is_fresh, left_out = is_apart, "images of groups that were used"
    kept = each_once(dataset, rows[is_fresh & is_measurable(samples)])
    if not len(kept):
        raise NotEnoughDataError(
            "No labelled sample is left to measure the repair on.", where=samples.name
        )
    n_repeated = len(rows) - int(is_fresh.sum())
    return samples.only(
        kept,
        name=f"{samples.name} ({left_out} left out: {n_repeated})" if n_repeated else samples.name,
    )


def is_image_of(dataset: Dataset, rows: IntArray, others: IntArray) -> BoolArray:
    """Return which rows [n] show the image of another row."""
    column = dataset.table.column("content_hash").combine_chunks()
    found = pc.is_in(column.take(pa.array(rows)), value_set=column.take(pa.array(others)))
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.bool_)


def each_once(dataset: Dataset, rows: IntArray) -> IntArray:
    """Return the rows without those whose image an earlier one shows."""
    coded = (
        dataset.table.column("content_hash")
        .take(pa.array(rows))
        .combine_chunks()
        .dictionary_encode()
    )
    first = np.unique(np.asarray(coded.indices), return_index=True)[1]
    return np.asarray(np.sort(rows[first]), dtype=np.int64)


def question_of(digest: str, parts: Iterable[tuple[Result, BoolArray | None]]) -> str:
    """Return the name of a question.

    Args:
        digest: of the measured samples.
        parts: classes, each with the samples of it that are meant; None for all.
    """
    content = hashlib.sha256(digest.encode())
    for one, chosen in parts:
        members = slice(None) if chosen is None else chosen
        content.update(f"\n{one.problem.title}\n".encode())
        content.update(one.positions[members].astype(np.int64).tobytes())
        content.update(np.packbits(one.right_before[members]).tobytes())
        content.update(np.packbits(one.right_after[members]).tobytes())
    return f"repair {content.hexdigest()[:24]}"


FORMER = (GroupKind.FORMERLY_RIGHT, GroupKind.FORMERLY_WRONG)
"""Groups that were chosen by their result before: they can move one way only, so there is nothing to test and p is 1."""


_Tally = tuple[int, int, int, int]
"""How many samples there are, and how many of them were right before, after, and both times."""
NOTHING: _Tally = (0, 0, 0, 0)


class _Grouped(NamedTuple):
    """Samples of which several belong together: which were right before and after, and the number of their group."""

    before: BoolArray
    after: BoolArray
    groups: IntArray

    @property
    def p_value(self) -> float:
        return paired_group_p(~self.before & self.after, self.before & ~self.after, self.groups)

    @property
    def bounds(self) -> list[float]:
        """Return the ends of the intervals of accuracy before and after."""
        worth = effective_number(self.groups, np.ones(len(self.groups), dtype=np.bool_))
        n_right = (int(self.before.sum()), int(self.after.sum()))
        ends = [group_interval(count, len(self.groups), worth) for count in n_right]
        return [end for both in ends for end in both]

    @property
    def interval_of_change(self) -> Interval:
        low, high = group_change_interval(
            ~self.before & self.after, self.before & ~self.after, self.groups
        )
        return Interval(low=low, high=high)


class _Row(NamedTuple):
    group: str
    kind: GroupKind
    tally: _Tally
    grouped: _Grouped | None = None
    question: str = ""


def group_changes(comparison: Comparison, *, with_classes: bool) -> tuple[GroupChange, ...]:
    """Return the changes overall, of formerly right and wrong samples, of slices and the rest of their classes, and of classes.

    A group without samples is kept, so that nobody takes it for one that was forgotten.

    Args:
        comparison: what was measured.
        with_classes: whether these samples decide: then every class is listed, and questions to them have names.
    """
    by_class = [_tally(one.right_before, one.right_after) for one in comparison.predictions]
    digest = comparison.samples.digest() if with_classes else ""
    whole = question_of(digest, [(one, None) for one in comparison.predictions]) if digest else ""
    rows = [
        *_whole(by_class, _all_grouped(comparison), whole),
        *_sliced(comparison.parts, digest),
    ]
    if with_classes:
        rows += [
            _Row(one.problem.title, GroupKind.CLASS, tally, _group(one))
            for one, tally in zip(comparison.predictions, by_class, strict=True)
        ]
    return _records(rows)


def _group(one: Result | None, chosen: BoolArray | None = None) -> _Grouped | None:
    groups = None if one is None else one.problem.groups
    if one is None or groups is None:
        return None
    own = np.ones(len(groups), dtype=np.bool_) if chosen is None else chosen
    return _Grouped(one.right_before[own], one.right_after[own], groups[own])


def _all_grouped(comparison: Comparison) -> _Grouped | None:
    """Return all decisions on all samples, None if every sample is a group of its own."""
    groups = comparison.decision_groups
    if groups is None:
        return None
    before, after = (
        np.concatenate([getattr(one, name) for one in comparison.predictions])
        for name in ("right_before", "right_after")
    )
    return _Grouped(before, after, groups)


def _whole(by_class: Sequence[_Tally], grouped: _Grouped | None, question: str) -> Iterator[_Row]:
    totals = [sum(numbers) for numbers in zip(NOTHING, *by_class, strict=True)]
    n_samples, before, after, both = totals
    yield _Row("overall", GroupKind.OVERALL, (n_samples, before, after, both), grouped, question)
    yield _Row("formerly right", GroupKind.FORMERLY_RIGHT, (before, before, both, both))
    n_wrong, gained = n_samples - before, after - both
    yield _Row("formerly wrong", GroupKind.FORMERLY_WRONG, (n_wrong, 0, gained, 0))


def _sliced(parts: Sequence[SlicePart], digest: str) -> Iterator[_Row]:
    for part in parts:
        one = part.result
        inside, outside = NOTHING, NOTHING
        names = ["", ""]
        if one is not None and digest:
            names = [question_of(digest, [(one, side)]) for side in (part.inside, part.outside)]
        if one is not None:
            inside = _tally(one.right_before[part.inside], one.right_after[part.inside])
            outside = _tally(one.right_before[part.outside], one.right_after[part.outside])
        yield _Row(part.title, GroupKind.SLICE, inside, _group(one, part.inside), names[0])
        label = part.class_title
        rest = f"{label}: the rest" if len(parts) == 1 else f"{label}: all but “{part.title}”"
        yield _Row(rest, GroupKind.COMPLEMENT, outside, _group(one, part.outside), names[1])


def _tally(right_before: BoolArray, right_after: BoolArray) -> _Tally:
    is_right = (right_before, right_after, right_before & right_after)
    before, after, both = (int(np.count_nonzero(one)) for one in is_right)
    return len(right_before), before, after, both


def _records(rows: Sequence[_Row]) -> tuple[GroupChange, ...]:
    """Return the records of all groups; figures are computed for all of them at once."""
    counts = np.array([row.tally for row in rows], dtype=np.int64)
    n_samples, before, after, both = counts.T
    gained, lost = after - both, before - both
    bounds = np.column_stack(
        [*wilson_intervals(before, n_samples), *wilson_intervals(after, n_samples)]
    ).tolist()
    p_values = mcnemar_ps(gained, lost).tolist()
    for place, row in enumerate(rows):
        if row.kind in FORMER:
            p_values[place] = 1.0
        elif row.grouped is not None:
            p_values[place], bounds[place] = row.grouped.p_value, row.grouped.bounds
    columns = (
        np.column_stack([n_samples, before, after, gained, lost]).tolist(),
        bounds,
        p_values,
    )
    return tuple(
        GroupChange(
            group=row.group,
            kind=row.kind,
            n_samples=numbers[0],
            right_before=numbers[1],
            right_after=numbers[2],
            gained=numbers[3],
            lost=numbers[4],
            interval_before=Interval(low=ends[0], high=ends[1]),
            interval_after=Interval(low=ends[2], high=ends[3]),
            p_value=p_value,
            n_groups=None if row.grouped is None else len(np.unique(row.grouped.groups)),
            interval_of_groups=None if row.grouped is None else row.grouped.interval_of_change,
            question=row.question,
        )
        for row, numbers, ends, p_value in zip(rows, *columns, strict=True)
    )


def check_probabilities(probabilities: FloatArray, samples: SampleSet) -> None:
    """Refuse probabilities that do not belong to the samples.

    Raises:
        DataError: if their shape is another one, or one of them is not a number.
    """
    wanted = (len(samples), samples.dataset.n_classes)
    if probabilities.shape != wanted:
        raise DataError(
            "There must be one row of probabilities for every measured sample, and one column for every class.",
            where=samples.name,
            given=probabilities.shape,
            fix=f"Give an array of shape {wanted}.",
        )
    is_bad = ~np.isfinite(probabilities).all(axis=1)
    if is_bad.any():
        raise DataError(
            f"{int(is_bad.sum())} measured samples have no usable probabilities after the repair.",
            where=samples.name,
            given=samples.dataset.sample_ids(samples.rows[is_bad][:5]),
            fix="Leave out samples whose features are not known.",
        )


MIN_GROUP = 5


def measure_arm(
    arm: RepairArm,
    probabilities: FloatArray,
    slices: Sequence[FailureSlice],
    samples: SampleSet,
    criterion: FailureCriterion,
    *,
    thresholds: FloatArray | None = None,
    elsewhere: Sequence[tuple[SampleSet, FloatArray]] = (),
    groups: IntArray | None = None,
    least_group: int = MIN_GROUP,
    column: str = "",
    seed: int = 0,
) -> RepairArm:
    """Return an arm with what it changes: the classifier's own predictions compared with the arm's on the same samples.

    Args:
        arm: what was done; nothing of it is measured yet.
        probabilities: what the arm says of the samples [n, c], in their order.
        slices: the slices that were repaired.
        samples: what decides; take what `untouched` gives.
        criterion: what counts as a failure.
        thresholds: multi-label decision threshold of every class [c]; the data set's own by default.
        elsewhere: further sets, the discovery half (seed) and the confirmation half (held-out), with what the arm says of them;
            samples without a label or a known result are left out there.
        groups: [n] number of every sample's group, -1 for none, if worst, average and gap are to be taken over given groups in
            place of slices, the rest of their classes and all other classes.
        least_group: groups with fewer samples are left out of worst, average and gap: the smaller a group, the more its accuracy
            is chance, and the worst of many is the unluckiest one.
        column: metadata column of group labels: then worst, average and gap over these groups are measured besides.
        seed: the only source of chance.

    Raises:
        DataError: if answers and samples do not belong together, or a slice is defined by predictions.
    """
    check_probabilities(probabilities, samples)
    refuse_prediction_rules(slices)
    if not is_measurable(samples).all():
        raise DataError(
            "Some measured samples have no label, or no prediction before.",
            where=samples.name,
            fix="Take what weakspot.repair.measure.untouched gives.",
        )
    comparison = compare(samples, probabilities, slices, criterion, thresholds)
    chosen = own_groups(comparison) if groups is None else given_groups(comparison, groups)
    changes = group_changes(comparison, with_classes=True)
    before, after = _calibration(comparison)
    together = several_to_a_group(comparison.before.groups)
    return arm.model_copy(
        update={
            "changes": changes,
            # Formerly right samples can do nothing but fall.
            "got_worse": tuple(
                one.group
                for one in changes
                if one.kind is not GroupKind.FORMERLY_RIGHT and one.right_after < one.right_before
            ),
            "spread": spread_of(
                chosen.at_least(least_group), len(samples), seed=seed, together=together
            ),
            "elsewhere": tuple(
                _measure(half, said, slices, criterion, thresholds) for half, said in elsewhere
            ),
            "calibration_before": before,
            "calibration_after": after,
            "given": measure_given(comparison, column, least_group=least_group, seed=seed)
            if column
            else None,
        }
    )


def _measure(
    samples: SampleSet,
    probabilities: FloatArray,
    slices: Sequence[FailureSlice],
    criterion: FailureCriterion,
    thresholds: FloatArray | None,
) -> ArmMeasurement:
    if len(probabilities) != len(samples):
        check_probabilities(probabilities, samples)
    known = is_measurable(samples)
    samples, probabilities = samples.only(samples.rows[known]), probabilities[known]
    check_probabilities(probabilities, samples)
    comparison = compare(samples, probabilities, slices, criterion, thresholds)
    return ArmMeasurement(
        measured_on=DataUse.of(samples), changes=group_changes(comparison, with_classes=False)
    )


def _calibration(comparison: Comparison) -> tuple[float | None, float | None]:
    """Return the calibration errors before and after; nothing if there were no probabilities before."""
    before, after = comparison.before.probabilities, comparison.after.probabilities
    if before is None or after is None or not len(before):
        return None, None
    task = comparison.before.task
    return (
        calibration_error(before, comparison.targets, task=task),
        calibration_error(after, comparison.targets, task=task),
    )
