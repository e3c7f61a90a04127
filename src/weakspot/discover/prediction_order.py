"""Two baselines: the samples of which the classifier is least sure, and those with the largest loss."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from weakspot.core.arrays import DoubleArray
from weakspot.core.bounds import Count
from weakspot.core.dataset import Task
from weakspot.core.discoverers import ClassDiscoverer, ClassSamples
from weakspot.core.failures import ClassProblem
from weakspot.core.roles import Discovery
from weakspot.core.rules import PredictionRule
from weakspot.core.statistics import association

NOT_SINGLE_LABEL = "Doubt and loss order the samples of single-label tasks only."
NO_PROBABILITIES = "The classifier's probabilities are not known, so samples cannot be ordered."


@dataclass(frozen=True, kw_only=True)
class PredictionOrder(ClassDiscoverer):
    """As many samples of a class as failed, those that come first by a measure of the prediction.

    Args:
        min_failures: classes with fewer failures are passed over.
    """

    is_baseline = True
    measure: ClassVar[Literal["doubt", "loss"]]
    min_failures: Count = 2

    def looked_at(self, of: ClassSamples) -> Discovery:
        dataset = of.samples.dataset
        if dataset.task is not Task.SINGLE_LABEL:
            return of.noted(NOT_SINGLE_LABEL)
        return (
            of.noted(NO_PROBABILITIES) if dataset.probabilities is None else super().looked_at(of)
        )

    def slices_of(self, of: ClassSamples) -> Discovery:
        rule = PredictionRule(measure=self.measure, threshold=0.0)
        scores = rule.scores(of.samples, of.problem.rows)
        rule = rule.model_copy(update={"threshold": threshold_for(scores, of.problem)})
        inside = scores >= rule.threshold
        slice_ = self.slice_of(
            of, rule, strength=association(of.problem.failed, inside), n_found=int(inside.sum())
        )
        return Discovery(slices=(slice_,), n_considered=1)


class ConfidenceDiscoverer(PredictionOrder):
    """Baseline: the samples of which the classifier is least sure.

    >>> from weakspot.testing.examples import CRITERION, discovery_samples
    >>> found = ConfidenceDiscoverer().discover(discovery_samples(), CRITERION, seed=0)
    >>> found.slices[0].class_name, found.slices[0].n_found
    ('disc', 15)
    """

    method = "confidence"
    measure = "doubt"


class LossDiscoverer(PredictionOrder):
    """Baseline: the samples whose true label got the least probability.

    >>> from weakspot.testing.examples import CRITERION, discovery_samples
    >>> found = LossDiscoverer().discover(discovery_samples(), CRITERION, seed=0)
    >>> found.slices[0].class_name, found.slices[0].n_found
    ('disc', 15)
    """

    method = "loss"
    measure = "loss"


def threshold_for(scores: DoubleArray, problem: ClassProblem) -> float:
    """Return the score of the last of as many samples as failed, highest first.

    >>> failed = np.array([True, False, False])
    >>> problem = ClassProblem(class_name="cat", side=None, rows=np.arange(3), failed=failed, confidence=np.zeros(3))
    >>> threshold_for(np.array([0.2, 0.9, 0.5]), problem)
    0.9
    """
    return float(np.sort(scores)[len(scores) - problem.n_failed])
