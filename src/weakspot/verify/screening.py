"""Which candidates are worth testing on confirmation samples, judged on discovery samples alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice, matches
from weakspot.core.statistics import fisher_p


@dataclass(frozen=True, kw_only=True)
class Screened:
    """Candidates that passed, and how many did not."""

    kept: tuple[FailureSlice, ...]
    n_dropped: int


def screened(
    slices: Sequence[FailureSlice], samples: SampleSet, criterion: FailureCriterion, *, largest_p: float, most: int
) -> Screened:
    """Keep the candidates that stand out on the samples they were found on; the order stays.

    Args:
        slices: candidates of all methods.
        samples: the discovery samples.
        criterion: what counts as a failure.
        largest_p: candidates with a larger p-value are dropped.
        most: at most so many are kept, smallest p-value first.
    """
    problems = class_problems(samples.dataset, samples.rows, criterion) if len(samples) else ()
    judged: list[tuple[float, int]] = []
    for place, found in enumerate(slices):
        problem = next((one for one in problems if matches(found, one)), None)
        if problem is None:
            continue
        inside = found.inside(samples, problem)
        p_value = fisher_p(
            int(problem.failed[inside].sum()), int(inside.sum()), int(problem.failed[~inside].sum()), int((~inside).sum())
        )
        if p_value <= largest_p:
            judged.append((p_value, place))
    places = sorted(place for _, place in sorted(judged)[:most])
    return Screened(kept=tuple(slices[place] for place in places), n_dropped=len(slices) - len(places))
