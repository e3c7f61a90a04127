"""One slice on several classifiers: does it fail there too, and where do two classifiers differ most."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
from pydantic import Field

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.evidence import Interval
from weakspot.core.group_tests import (
    count_groups,
    effective_number,
    group_change_interval,
    group_interval,
    group_p,
    paired_group_p,
)
from weakspot.core.groups import several_to_a_group
from weakspot.core.record import Record
from weakspot.core.statistics import q_values

LEVEL = 0.95
MIN_SUPPORT = 5


class SliceOnModel(Record):
    """How one classifier does on one slice.

    Args:
        slice_id: which slice.
        title: the slice in words.
        found_on: the classifier that it was found on.
        model: the classifier that was measured.
        n_inside: samples of the class inside the slice; none of them was used to find it.
        failures_inside: failures among them.
        n_outside: samples of the class outside.
        failures_outside: failures among them.
        interval_inside: of the failure rate inside.
        interval_outside: of the failure rate outside.
        p_value: chance of such a gap if members failed no more often than the rest of the class.
        q_value: over everything that was ever asked about this classifier, or, without ledgers, over this comparison.
        holds: whether the slice is a failure slice of this classifier too.
        n_units: groups on the smaller side, None if every sample is on its own.
    """

    slice_id: str
    title: str
    found_on: str
    model: str
    n_inside: int
    failures_inside: int
    n_outside: int
    failures_outside: int
    interval_inside: Interval
    interval_outside: Interval
    p_value: float
    q_value: float = 1.0
    holds: bool = False
    n_units: int | None = None

    @property
    def rate_inside(self) -> float:
        """Return the failure rate inside, 0 without samples."""
        return self.failures_inside / self.n_inside if self.n_inside else 0.0

    @property
    def rate_outside(self) -> float:
        """Return the failure rate outside, 0 without samples."""
        return self.failures_outside / self.n_outside if self.n_outside else 0.0


class SliceDifference(Record):
    """How two classifiers differ on the members of one slice.

    Args:
        slice_id: which slice.
        title: the slice in words.
        first: a classifier.
        second: another.
        n_samples: members that both were measured on.
        only_first_fails: members on which only the first fails.
        only_second_fails: members on which only the second fails.
        difference: failure rate of the first minus that of the second.
        interval: of the difference; paired.
        p_value: McNemar's exact test; groups count once.
        q_value: over all slices and pairs of the comparison.
    """

    slice_id: str
    title: str
    first: str
    second: str
    n_samples: int
    only_first_fails: int
    only_second_fails: int
    difference: float
    interval: Interval
    p_value: float
    q_value: float = 1.0


class SlicePredictions(Record):
    """One slice and what every classifier does on samples that were not used to find it.

    Args:
        slice_id: which slice.
        title: the slice in words.
        found_on: the classifier that it was found on.
        inside: which of the class's samples are members.
        failed: by classifier, which of the samples failed.
        groups: number of the group of every sample; empty if every one is its own.
        questions: by classifier, the name of the question whether the slice holds on it, for the ledger.
    """

    slice_id: str
    title: str
    found_on: str
    inside: tuple[bool, ...]
    failed: Mapping[str, tuple[bool, ...]]
    groups: tuple[int, ...] = ()
    questions: Mapping[str, str] = Field(default_factory=dict)

    @property
    def together(self) -> IntArray | None:
        """Return the groups [n], None if every sample is its own."""
        return several_to_a_group(np.array(self.groups)) if self.groups else None


def measured_slices(slices: Sequence[SlicePredictions]) -> tuple[SliceOnModel, ...]:
    """Measure every slice on every classifier; nothing is judged yet."""
    return tuple(_on_model(one, model) for one in slices for model in one.failed)


def is_tested(one: SliceOnModel, min_support: int = MIN_SUPPORT) -> bool:
    """Return whether a slice has enough groups, or samples on their own, to be tested on a classifier."""
    n_units = min(one.n_inside, one.n_outside) if one.n_units is None else one.n_units
    return n_units >= min_support


def measure_slices(
    slices: Sequence[SlicePredictions], *, alpha: float = 0.05, min_support: int = MIN_SUPPORT
) -> tuple[SliceOnModel, ...]:
    """Measure every slice on every classifier and judge them; error rates hold over all of it, and over nothing else."""
    found = measured_slices(slices)
    tested = [is_tested(one, min_support) for one in found]
    adjusted = iter(
        q_values(
            [one.p_value for one, has_test in zip(found, tested, strict=True) if has_test]
        ).tolist()
    )
    judged = []
    for one, has_test in zip(found, tested, strict=True):
        q_value = next(adjusted) if has_test else 1.0
        holds = q_value <= alpha and one.rate_inside > one.rate_outside
        judged.append(one.model_copy(update={"q_value": q_value, "holds": holds}))
    return tuple(judged)


def _on_model(one: SlicePredictions, model: str) -> SliceOnModel:
    inside, failed = (
        np.array(one.inside, dtype=np.bool_),
        np.array(one.failed[model], dtype=np.bool_),
    )
    groups = one.together
    n_inside, n_outside = int(inside.sum()), int((~inside).sum())
    failures_inside, failures_outside = int(failed[inside].sum()), int(failed[~inside].sum())
    return SliceOnModel(
        slice_id=one.slice_id,
        title=one.title,
        found_on=one.found_on,
        model=model,
        n_inside=n_inside,
        failures_inside=failures_inside,
        n_outside=n_outside,
        failures_outside=failures_outside,
        interval_inside=_interval(failures_inside, effective_number(groups, inside), n_inside),
        interval_outside=_interval(failures_outside, effective_number(groups, ~inside), n_outside),
        p_value=group_p(inside, failed, groups),
        n_units=None if groups is None else min(_n_units(groups, inside)),
    )


def _n_units(groups: IntArray, inside: BoolArray) -> tuple[int, int]:
    """Return how many groups are inside and outside."""
    return count_groups(groups, inside), count_groups(groups, ~inside)


def _interval(failures: int, effective: float, n_samples: int) -> Interval:
    low, high = group_interval(failures, n_samples, effective, level=LEVEL)
    return Interval(low=low, high=high, level=LEVEL)


def differences(slices: Sequence[SlicePredictions]) -> tuple[SliceDifference, ...]:
    """Return how every two classifiers differ on every slice, largest difference first."""
    found = [
        _difference(one, first, second)
        for one in slices
        for first, second in itertools.combinations(one.failed, 2)
        if any(one.inside)
    ]
    adjusted = q_values([one.p_value for one in found])
    judged = [
        one.model_copy(update={"q_value": float(q_value)})
        for one, q_value in zip(found, adjusted, strict=True)
    ]
    return tuple(
        sorted(judged, key=lambda one: (-abs(one.difference), one.slice_id, one.first, one.second))
    )


def _difference(one: SlicePredictions, first: str, second: str) -> SliceDifference:
    inside = np.array(one.inside, dtype=np.bool_)
    fails, fails_too = (
        np.array(one.failed[name], dtype=np.bool_)[inside] for name in (first, second)
    )
    only_first, only_second, n_samples = (
        int((fails & ~fails_too).sum()),
        int((fails_too & ~fails).sum()),
        int(inside.sum()),
    )
    groups = None if one.together is None else one.together[inside]
    low, high = paired_interval(fails, fails_too, groups)
    return SliceDifference(
        slice_id=one.slice_id,
        title=one.title,
        first=first,
        second=second,
        n_samples=n_samples,
        only_first_fails=only_first,
        only_second_fails=only_second,
        difference=(only_first - only_second) / n_samples,
        interval=Interval(low=low, high=high, level=LEVEL),
        p_value=paired_group_p(fails & ~fails_too, fails_too & ~fails, groups),
    )


def paired_interval(
    first: BoolArray, second: BoolArray, groups: IntArray | None = None, *, level: float = LEVEL
) -> tuple[float, float]:
    """Return the interval of the difference of two rates on the same samples (Bonett and Price's adjusted Wald interval).

    Samples in groups [n] count as what they are worth.

    >>> low, high = paired_interval(np.array([True] * 8 + [False] * 12), np.array([True] * 2 + [False] * 18))
    >>> round(low, 3), round(high, 3)
    (0.048, 0.497)
    """
    from scipy.special import ndtri

    if groups is not None:
        return group_change_interval(first & ~second, second & ~first, groups, level=level)
    n_samples = len(first) + 2
    only_first, only_second = (
        (int((first & ~second).sum()) + 1) / n_samples,
        (int((second & ~first).sum()) + 1) / n_samples,
    )
    middle = only_first - only_second
    spread = float(ndtri(0.5 + level / 2)) * float(
        np.sqrt((only_first + only_second - middle**2) / n_samples)
    )
    return max(-1.0, middle - spread), min(1.0, middle + spread)
