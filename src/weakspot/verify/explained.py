"""Confirmed slices whose failures are mostly those of a stronger one: shown, but no findings of their own."""

from collections.abc import Sequence

import numpy as np

from weakspot.core.arrays import BoolArray
from weakspot.core.errors import DataError
from weakspot.core.evidence import Evidence, Explanation, SliceSides, Verdict, sides_of
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.group_tests import group_p
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice

LEAST_SHARED = 0.5
LARGEST_P = 0.05


def with_explanations(
    slices: Sequence[FailureSlice],
    evidence: Sequence[Evidence],
    samples: SampleSet,
    criterion: FailureCriterion,
) -> tuple[Evidence, ...]:
    """Return the same evidence, in the same order; confirmed slices that a stronger one of their class explains say so.

    Slices are gone through from the smallest p-value on. One is explained if at least half of its failures lie inside a single
    stronger slice, and its other members do not stand out among the samples outside all stronger ones. The verdict stays: what was
    confirmed is true, and error rates are those of the whole list.

    Args:
        slices: what was tested.
        evidence: one entry a slice.
        samples: the samples it was measured on.
        criterion: what counts as a failure.
    """
    if len(slices) != len(evidence):
        raise DataError(
            "Every slice needs one entry of evidence.", given=(len(slices), len(evidence))
        )
    problems = class_problems(samples.dataset, samples.rows, criterion) if len(samples) else ()
    confirmed = [
        place for place, entry in enumerate(evidence) if entry.verdict is Verdict.CONFIRMED
    ]
    found: dict[int, Explanation] = {}
    own: list[tuple[FailureSlice, SliceSides]] = []
    for place in sorted(
        confirmed, key=lambda place: (evidence[place].p_value, slices[place].slice_id)
    ):
        sides = sides_of(slices[place], samples, problems)
        stronger = [(one, other) for one, other in own if _same_class(one, slices[place])]
        explanation = _explanation(sides, stronger)
        if explanation is None:
            own.append((slices[place], sides))
        else:
            found[place] = explanation
    return tuple(
        entry.model_copy(update={"explained": found[place]}) if place in found else entry
        for place, entry in enumerate(evidence)
    )


def _same_class(first: FailureSlice, second: FailureSlice) -> bool:
    return first.class_name == second.class_name and first.side == second.side


def _explanation(
    sides: SliceSides, stronger: Sequence[tuple[FailureSlice, SliceSides]]
) -> Explanation | None:
    if sides.problem is None or not stronger:
        return None
    failing = sides.inside & sides.problem.failed
    shares = [
        float(other.inside[failing].mean()) if failing.any() else 0.0 for _, other in stronger
    ]
    best = int(np.argmax(shares))
    rest: BoolArray = ~np.any([other.inside for _, other in stronger], axis=0)
    failed, inside, outside = sides.problem.failed, sides.inside & rest, sides.outside & rest
    counts = (
        int(failed[inside].sum()),
        int(inside.sum()),
        int(failed[outside].sum()),
        int(outside.sum()),
    )
    groups = None if sides.problem.groups is None else sides.problem.groups[inside | outside]
    p_value = group_p(inside[inside | outside], failed[inside | outside], groups)
    if shares[best] < LEAST_SHARED or p_value <= LARGEST_P:
        return None
    return Explanation(
        slice_id=stronger[best][0].slice_id,
        shared_failures=shares[best],
        n_inside=counts[1],
        failures_inside=counts[0],
        n_outside=counts[3],
        failures_outside=counts[2],
    )
