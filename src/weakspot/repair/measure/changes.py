"""Accuracy of groups before and after, with intervals and McNemar's test."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from weakspot.core.arrays import BoolArray
from weakspot.core.count_statistics import mcnemar_ps, wilson_intervals
from weakspot.core.evidence import Interval
from weakspot.core.repairs import GroupChange, GroupKind
from weakspot.repair.measure.outcomes import Comparison, SlicePart

FORMER = (GroupKind.FORMERLY_RIGHT, GroupKind.FORMERLY_WRONG)
"""Groups that were chosen by their outcome before: they can move one way only, so there is nothing to test and p is 1."""


class _Tally(NamedTuple):
    """How many samples there are, and how many of them were right before, after, and both times."""

    n_samples: int = 0
    before: int = 0
    after: int = 0
    both: int = 0


class _Row(NamedTuple):
    group: str
    kind: GroupKind
    tally: _Tally


def group_changes(comparison: Comparison, *, with_classes: bool) -> tuple[GroupChange, ...]:
    """Return the changes overall, of formerly right and wrong samples, of slices and the rest of their classes, and of classes.

    A group without samples is kept, so that nobody takes it for one that was forgotten.
    """
    by_class = [_tally(one.right_before, one.right_after) for one in comparison.outcomes]
    rows = [*_whole(by_class), *_sliced(comparison.parts)]
    if with_classes:
        rows += [_Row(one.problem.title, GroupKind.CLASS, tally) for one, tally in zip(comparison.outcomes, by_class, strict=True)]
    return _records(rows)


def names_of_fallen(changes: Sequence[GroupChange]) -> tuple[str, ...]:
    """Return the groups whose accuracy fell; formerly right samples can do nothing else and are left out."""
    return tuple(one.group for one in changes if one.kind is not GroupKind.FORMERLY_RIGHT and one.right_after < one.right_before)


def _whole(by_class: Sequence[_Tally]) -> Iterator[_Row]:
    whole = _Tally(*(sum(numbers) for numbers in zip(*by_class, strict=True))) if by_class else _Tally()
    n_wrong = whole.n_samples - whole.before
    yield _Row("overall", GroupKind.OVERALL, whole)
    yield _Row("formerly right", GroupKind.FORMERLY_RIGHT, _Tally(whole.before, whole.before, whole.both, whole.both))
    yield _Row("formerly wrong", GroupKind.FORMERLY_WRONG, _Tally(n_wrong, 0, whole.after - whole.both, 0))


def _sliced(parts: Sequence[SlicePart]) -> Iterator[_Row]:
    for part in parts:
        one = part.outcome
        inside, outside = _Tally(), _Tally()
        if one is not None:
            inside = _tally(one.right_before[part.inside], one.right_after[part.inside])
            outside = _tally(one.right_before[part.outside], one.right_after[part.outside])
        yield _Row(part.title, GroupKind.SLICE, inside)
        label = part.class_title
        rest = f"{label}: the rest" if len(parts) == 1 else f"{label}: all but “{part.title}”"
        yield _Row(rest, GroupKind.COMPLEMENT, outside)


def _tally(right_before: BoolArray, right_after: BoolArray) -> _Tally:
    return _Tally(
        len(right_before),
        int(np.count_nonzero(right_before)),
        int(np.count_nonzero(right_after)),
        int(np.count_nonzero(right_before & right_after)),
    )


def _records(rows: Sequence[_Row]) -> tuple[GroupChange, ...]:
    """Return the records of all groups; figures are computed for all of them at once."""
    counts = np.array([row.tally for row in rows], dtype=np.int64)
    n_samples, before, after, both = counts.T
    gained, lost = after - both, before - both
    columns = (
        np.column_stack([n_samples, before, after, gained, lost]).tolist(),
        np.column_stack([*wilson_intervals(before, n_samples), *wilson_intervals(after, n_samples)]).tolist(),
        [1.0 if row.kind in FORMER else p_value for row, p_value in zip(rows, mcnemar_ps(gained, lost).tolist(), strict=True)],
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
            interval_before=Interval(low=bounds[0], high=bounds[1]),
            interval_after=Interval(low=bounds[2], high=bounds[3]),
            p_value=p_value,
        )
        for row, numbers, bounds, p_value in zip(rows, *columns, strict=True)
    )
