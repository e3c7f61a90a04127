"""Two baselines: the samples of which the classifier is least sure, and those with the largest loss.

Neither says what its members have in common, and that samples with a large loss fail is true by definition: what they find is
never published. They show what a method adds to looking at the classifier's own doubt.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from weakspot.core.arrays import DoubleArray
from weakspot.core.assistants import NOBODY, Assistants
from weakspot.core.class_vectors import obstacle
from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import ConfigError
from weakspot.core.failures import ClassProblem, FailureCriterion, class_problems
from weakspot.core.roles import Discovery
from weakspot.core.rules import OutcomeRule
from weakspot.core.run import ClassNote
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.core.statistics import association

Measure = Literal["doubt", "loss"]


@dataclass(frozen=True, kw_only=True)
class OutcomeOrder:
    """As many samples of a class as failed, those that come first by a measure of the outcome.

    Args:
        min_failures: classes with fewer failures are passed over.
    """

    measure: ClassVar[Measure]
    method: ClassVar[str]
    min_failures: int = 2

    def __post_init__(self) -> None:
        """Refuse settings that cannot mean anything."""
        if self.min_failures < 1:
            raise ConfigError("The setting min_failures must be at least 1.", given=self.min_failures)

    @property
    def is_baseline(self) -> bool:
        """Return True."""
        return True

    def discover(self, samples: SampleSet, criterion: FailureCriterion, *, seed: int, assistants: Assistants = NOBODY) -> Discovery:
        """Return one slice for every class that fails, and a note for every other class."""
        del seed, assistants
        return _ordered(samples, criterion, measure=self.measure, method=self.method, min_failures=self.min_failures)


class ConfidenceDiscoverer(OutcomeOrder):
    """Baseline: the samples of which the classifier is least sure."""

    measure = "doubt"
    method = "confidence"


class LossDiscoverer(OutcomeOrder):
    """Baseline: the samples whose true label got the least probability."""

    measure = "loss"
    method = "loss"


def _ordered(samples: SampleSet, criterion: FailureCriterion, *, measure: Measure, method: str, min_failures: int) -> Discovery:
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
        scores = OutcomeRule(measure=measure, threshold=0.0).scores(samples, problem.rows)
        rule = OutcomeRule(measure=measure, threshold=threshold_for(scores, problem))
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
        "" if dataset.probabilities is not None else "The classifier's probabilities are not known, so samples cannot be ordered."
    )


def threshold_for(scores: DoubleArray, problem: ClassProblem) -> float:
    """Return the score of the last of as many samples as failed, highest first.

    >>> failed = np.array([True, False, False])
    >>> problem = ClassProblem(class_name="cat", side=None, rows=np.arange(3), failed=failed, confidence=np.zeros(3))
    >>> threshold_for(np.array([0.2, 0.9, 0.5]), problem)
    0.9
    """
    return float(np.sort(scores)[len(scores) - problem.n_failed])
