"""Which slices get words: all of few, of many those that stand out most where predictions may be looked at, and what is confirmed."""

from collections.abc import Sequence

from weakspot.core.evidence import sides_of, sides_p
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.run import RunRecord
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice

MOST_NAMED = 10
"""Of one half. Words for a slice cost more than its proof, and of hundreds of candidates most are chance."""


def worth_naming(
    slices: Sequence[FailureSlice], samples: SampleSet, criterion: FailureCriterion
) -> tuple[FailureSlice, ...]:
    """Return all slices if they are few, else those with the smallest p-values on the samples that words are chosen on."""
    if len(slices) <= MOST_NAMED:
        return tuple(slices)
    problems = class_problems(samples.dataset, samples.rows, criterion)
    p_values = sides_p([sides_of(found, samples, problems) for found in slices])
    best = sorted(range(len(slices)), key=lambda place: (p_values[place], place))[:MOST_NAMED]
    return tuple(slices[place] for place in sorted(best))


def confirmed_without_words(record: RunRecord) -> frozenset[str]:
    """Return the ids of confirmed slices that were not among those worth naming before."""
    if len(record.slices) <= MOST_NAMED:
        return frozenset()
    return frozenset(found.slice_id for found, _ in record.published() if not found.names)
