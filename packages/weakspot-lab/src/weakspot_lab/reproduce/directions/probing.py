"""The paper's linear SVMs, and what they are compared with: orders of samples, from the hardest on, and captions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray, unit_rows
from weakspot.core.dataset import Split
from weakspot.core.failures import FailureCriterion
from weakspot.core.rules import LinearRule
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.discover.directions import DirectionsDiscoverer
from weakspot.discover.mixture import MixtureDiscoverer
from weakspot_lab.reproduce.directions.case import TEST, VALIDATION, Case

CRITERION = FailureCriterion()
GUESSING = 0.5
PAPER_SVM = DirectionsDiscoverer(
    n_directions=1,
    cut="boundary",
    cost_slack=0.0,
    n_permutations=0,
    n_outer_folds=2,
    min_strength=0.0,
)
"""One direction a class, C by two-fold cross-validation, membership at the SVM's own boundary."""
PAPER_DOMINO = MixtureDiscoverer(n_components=2, n_slices=1)
"""Two components a class, weights 10 and 10, as the paper sets Domino."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Probe:
    """The direction of every class that has one.

    Args:
        case: the problem.
        slices: by class code.
        probabilities: of the network [n, c].
    """

    case: Case
    slices: Mapping[int, FailureSlice]
    probabilities: FloatArray

    def strength(self, code: int) -> float:
        """Return the cross-validated balanced accuracy; half where no direction was found."""
        found = self.slices.get(code)
        return GUESSING if found is None or found.strength is None else float(found.strength)

    @property
    def mean_strength(self) -> float:
        return float(np.mean([self.strength(code) for code in range(len(self.case.class_names))]))

    def scores(self, rows: IntArray) -> DoubleArray:
        """Return how hard samples are by the direction of their class; larger is harder."""
        return self._each(rows, lambda found, samples, own: found.rule.scores(samples, own))

    def flagged(self, rows: IntArray) -> BoolArray:
        """Return which samples the direction of their class calls failures."""
        found = self._each(
            rows, lambda one, samples, own: one.rule.members(samples, own).astype(np.float64)
        )
        return np.asarray(found > 0, dtype=np.bool_)

    def _each(
        self, rows: IntArray, measure: Callable[[FailureSlice, SampleSet, IntArray], DoubleArray]
    ) -> DoubleArray:
        samples = self.case.samples(self.probabilities, TEST)
        found = np.full(len(rows), -np.inf)
        for code, one in self.slices.items():
            own = self.case.labels[rows] == code
            if own.any():
                found[own] = measure(one, samples, rows[own])
        return found

    def captions(self, code: int, candidates: Sequence[str], reference: str) -> list[str]:
        """Return candidate captions, hardest first: how far what they add to the reference lies along the direction."""
        rule = self.slices[code].rule
        assert isinstance(rule, LinearRule)
        assert self.case.embed_texts is not None
        difference = self.case.embed_texts(candidates) - self.case.embed_texts([reference])
        scale = 1.0 if rule.scale is None else np.asarray(rule.scale)
        along = unit_rows(np.asarray(difference / scale, dtype=np.float32)) @ np.asarray(
            rule.direction, dtype=np.float32
        )
        return [candidates[place] for place in np.argsort(-along, kind="stable")]


def probe(
    case: Case,
    probabilities: FloatArray,
    *,
    seed: int,
    split: Split = VALIDATION,
    discoverer: DirectionsDiscoverer | MixtureDiscoverer = PAPER_SVM,
) -> Probe:
    """Fit the paper's SVM, or the mixture, to the validation samples of every class."""
    found = discoverer.discover(case.samples(probabilities, split), CRITERION, seed=seed)
    slices: dict[int, FailureSlice] = {}
    for one in found.slices:
        slices.setdefault(case.class_names.index(one.class_name), one)
    return Probe(case=case, slices=slices, probabilities=probabilities)


def doubts(probabilities: FloatArray, labels: IntArray) -> DoubleArray:
    """Return how little a network believes in the true class [n]; larger is harder."""
    return np.asarray(
        1.0 - probabilities[np.arange(len(labels)), labels].astype(np.float64), dtype=np.float64
    )


def minority_shares(
    case: Case, scores: DoubleArray, rows: IntArray, counts: Sequence[int]
) -> list[float]:
    """Return, for each number k, the share of minority samples among the k hardest of every class, the mean over classes."""
    found = []
    for code in np.unique(case.labels[rows]).tolist():
        own = case.labels[rows] == code
        order = np.argsort(-scores[own], kind="stable")
        hard = case.is_minority[rows[own]][order]
        found.append([float(hard[:count].mean()) for count in counts])
    return [float(one) for one in np.mean(found, axis=0)]


def nearest_rows(case: Case, caption: str, rows: IntArray, count: int) -> IntArray:
    """Return the rows whose embeddings are most similar to a caption."""
    assert case.embed_texts is not None
    likeness = unit_rows(case.embeddings[rows]) @ unit_rows(case.embed_texts([caption]))[0]
    return rows[np.argsort(-likeness, kind="stable")[:count]]
