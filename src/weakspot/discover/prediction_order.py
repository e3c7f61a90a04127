"""Two baselines: the samples of which the classifier is least sure, and those with the largest loss."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from weakspot.core.arrays import DoubleArray
from weakspot.core.assistants import NO_ASSISTANTS, Assistants
from weakspot.core.bounds import Count, check_bounds
from weakspot.core.dataset import Dataset, Task
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems
from weakspot.core.roles import Discovery
from weakspot.core.rules import PredictionRule
from weakspot.core.run import ClassNote
from weakspot.core.samples import SampleSet, obstacle
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.core.statistics import association

Measure = Literal["doubt", "loss"]


@dataclass(frozen=True, kw_only=True)
class PredictionOrder:
    """As many samples of a class as failed, those that come first by a measure of the prediction.

    Args:
        min_failures: classes with fewer failures are passed over.
    """

    measure: ClassVar[Measure]
    method: ClassVar[str]
    min_failures: Count = 2

    def __post_init__(self) -> None:
        check_bounds(self)

    @property
    def is_baseline(self) -> bool:
        return True

    def discover(
        self,
        samples: SampleSet,
        criterion: FailureCriterion,
        *,
        seed: int,
        assistants: Assistants = NO_ASSISTANTS,
    ) -> Discovery:
        del seed, assistants
        return _order(
            samples,
            criterion,
            measure=self.measure,
            method=self.method,
            min_failures=self.min_failures,
        )


class ConfidenceDiscoverer(PredictionOrder):
    """Baseline: the samples of which the classifier is least sure.

    >>> from weakspot.testing.examples import CRITERION, discovery_samples
    >>> found = ConfidenceDiscoverer().discover(discovery_samples(), CRITERION, seed=0)
    >>> found.slices[0].class_name, found.slices[0].n_found
    ('disc', 15)
    """

    measure = "doubt"
    method = "confidence"


class LossDiscoverer(PredictionOrder):
    """Baseline: the samples whose true label got the least probability.

    >>> from weakspot.testing.examples import CRITERION, discovery_samples
    >>> found = LossDiscoverer().discover(discovery_samples(), CRITERION, seed=0)
    >>> found.slices[0].class_name, found.slices[0].n_found
    ('disc', 15)
    """

    measure = "loss"
    method = "loss"


def _order(
    samples: SampleSet,
    criterion: FailureCriterion,
    *,
    measure: Measure,
    method: str,
    min_failures: int,
) -> Discovery:
    found_on = DataUse.of(samples)
    reason = _reason(samples.dataset)
    slices: list[FailureSlice] = []
    notes: list[ClassNote] = []
    problems = class_problems(samples.dataset, samples.rows, criterion)
    for problem in problems:
        note = reason or obstacle(problem, min_failures=min_failures, min_right=1)
        if note:
            notes.append(ClassNote(class_name=problem.title, note=note))
            continue
        scores = PredictionRule(measure=measure, threshold=0.0).scores(samples, problem.rows)
        rule = PredictionRule(measure=measure, threshold=threshold_for(scores, problem))
        inside = scores >= rule.threshold
        slices.append(
            FailureSlice(
                class_name=problem.class_name,
                side=problem.side,
                rule=rule,
                method=method,
                parameters={"min_failures": min_failures},
                found_on=found_on,
                strength=association(problem.failed, inside),
                n_found=int(inside.sum()),
            )
        )
    return Discovery(slices=tuple(slices), notes=tuple(notes), n_considered=len(slices))


def _reason(dataset: Dataset) -> str:
    if dataset.task is not Task.SINGLE_LABEL:
        return "Doubt and loss order the samples of single-label tasks only."
    return (
        ""
        if dataset.probabilities is not None
        else "The classifier's probabilities are not known, so samples cannot be ordered."
    )


def threshold_for(scores: DoubleArray, problem: ClassProblem) -> float:
    """Return the score of the last of as many samples as failed, highest first.

    >>> failed = np.array([True, False, False])
    >>> problem = ClassProblem(class_name="cat", side=None, rows=np.arange(3), failed=failed, confidence=np.zeros(3))
    >>> threshold_for(np.array([0.2, 0.9, 0.5]), problem)
    0.9
    """
    return float(np.sort(scores)[len(scores) - problem.n_failed])
