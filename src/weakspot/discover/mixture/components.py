"""Components of a fitted mixture as candidates for slices of a class."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, IntArray
from weakspot.core.class_embeddings import separating_cut
from weakspot.core.failures import ClassProblem
from weakspot.core.statistics import association
from weakspot.discover.mixture.groups import Group
from weakspot.discover.mixture.mixture_fit import Mixture
from weakspot.discover.mixture.reduction import Reduction

Ranking = Literal["separation", "errors", "profile"]
Cut = Literal["separating", "posterior"]
LEAST_CLASS_SHARE = 0.3


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedGroup:
    """A group, what its embeddings were reduced by, its mixture, and held-out log-odds of every component [m, n]."""

    group: Group
    reduction: Reduction
    mixture: Mixture
    odds: DoubleArray

    def components_of(self, place: int) -> IntArray:
        """Return the components to which the class of a problem contributes a large share."""
        return np.flatnonzero(self.mixture.label_profiles[:, place] >= LEAST_CLASS_SHARE)

    def surplus(self, component: int) -> float:
        """Return by how much a label is predicted more often than it is true in a component, for the label where that is most."""
        profile = self.mixture.prediction_profiles[component].copy()
        np.subtract.at(
            profile, np.asarray(self.group.columns), self.mixture.label_profiles[component]
        )
        return float(profile.max())


@dataclass(frozen=True, kw_only=True, eq=False)
class Candidate:
    """A component with a threshold.

    Args:
        component: which one.
        threshold: least log-odds of members.
        n_inside: members among the samples of the class.
        strength: association of held-out membership with failure.
        rank: larger is reported first.
    """

    component: int
    threshold: float
    n_inside: int
    strength: float
    rank: float


@dataclass(frozen=True, kw_only=True)
class CandidateSettings:
    """What makes a component a slice of a class; the fields are those of the discoverer."""

    ranking: Ranking
    cut: Cut
    min_members: int
    min_failures: int


def candidates(
    fitted: FittedGroup,
    place: int,
    places: IntArray,
    problem: ClassProblem,
    settings: CandidateSettings,
) -> Iterator[Candidate]:
    """Yield the components that gather failures of a class.

    Args:
        fitted: the mixture.
        place: which problem of the group.
        places: where its samples are in the group.
        problem: the same samples.
        settings: what is asked of a slice.
    """
    for component in fitted.components_of(place):
        scores = fitted.odds[component, places]
        threshold = (
            0.0
            if settings.cut == "posterior"
            else separating_cut(scores, problem.failed, min_inside=settings.min_members)
        )
        if threshold is None:
            continue
        inside: BoolArray = scores >= threshold
        n_inside, n_failed = int(inside.sum()), int(problem.failed[inside].sum())
        strength = association(problem.failed, inside)
        if n_inside < settings.min_members or n_failed < settings.min_failures or strength <= 0:
            continue
        ranks = {
            "separation": strength,
            "errors": n_failed**2 / n_inside,
            "profile": fitted.surplus(int(component)),
        }
        rank = round(ranks[settings.ranking], 9)
        yield Candidate(
            component=int(component),
            threshold=threshold,
            n_inside=n_inside,
            strength=strength,
            rank=rank,
        )
