"""Slices on samples that took no part in finding or testing them: does a finding hold there too?"""

from collections.abc import Mapping, Sequence

import numpy as np

from weakspot.core.evidence import Evidence, Measurement, Share, Verdict, sides_of
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice


def measured_elsewhere(
    slices: Sequence[FailureSlice],
    samples_by_name: Mapping[str, SampleSet],
    criterion: FailureCriterion,
    *,
    seen: SampleSet | None = None,
    level: float = 0.95,
) -> dict[str, tuple[Measurement, ...]]:
    """Return for every slice id the failures inside and outside on each of the sets that have labels and predictions.

    Nothing is decided by these figures, so looking at the test split here does not use it up.

    Args:
        slices: usually the confirmed ones.
        samples_by_name: for example the pool and the test split, by the name that reports show.
        criterion: what counts as a failure.
        seen: samples whose images, and others of their groups, are left out; those that slices were found and tested on.
        level: of the intervals.
    """
    found: dict[str, list[Measurement]] = {one.slice_id: [] for one in slices}
    for name, given in samples_by_name.items():
        samples = given if seen is None else _without(given, seen)
        problems = (
            class_problems(samples.dataset, samples.rows, criterion)
            if slices and len(samples)
            else ()
        )
        if not problems:
            continue
        use = DataUse(name=name, n_samples=len(samples), digest=samples.digest())
        for one in slices:
            sides = sides_of(one, samples, problems)
            failures_inside, n_inside, failures_outside, n_outside = sides.table
            worth = sides.effective
            inside = Share.of(failures_inside, n_inside, level=level, effective=worth[0])
            outside = Share.of(failures_outside, n_outside, level=level, effective=worth[1])
            measured = Measurement(
                measured_on=use, inside=inside, outside=outside, gap=inside.value - outside.value
            )
            found[one.slice_id].append(measured)
    return {slice_id: tuple(measurements) for slice_id, measurements in found.items()}


def with_elsewhere(
    slices: Sequence[FailureSlice],
    evidence: Sequence[Evidence],
    samples_by_name: Mapping[str, SampleSet],
    criterion: FailureCriterion,
    *,
    seen: SampleSet | None = None,
) -> tuple[Evidence, ...]:
    """Return the same evidence, in the same order, with measurements of every confirmed slice on other samples."""
    confirmed = {entry.slice_id for entry in evidence if entry.verdict is Verdict.CONFIRMED}
    measured = measured_elsewhere(
        [one for one in slices if one.slice_id in confirmed], samples_by_name, criterion, seen=seen
    )
    return tuple(
        entry.model_copy(update={"elsewhere": measured[entry.slice_id]})
        if entry.slice_id in measured
        else entry
        for entry in evidence
    )


def _without(samples: SampleSet, seen: SampleSet) -> SampleSet:
    dataset = samples.dataset
    if dataset is seen.dataset:
        return samples.only(
            samples.rows[~np.isin(dataset.groups[samples.rows], dataset.groups[seen.rows])]
        )
    contents = set(seen.dataset.content_hashes(seen.rows))
    is_new = [content not in contents for content in dataset.content_hashes(samples.rows)]
    return samples.only(samples.rows[np.array(is_new, dtype=np.bool_)])
