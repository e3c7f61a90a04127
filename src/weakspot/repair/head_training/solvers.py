"""Solvers of one problem: an exact one (preconditioned L-BFGS), and gradient descent as papers on repair use it."""

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import AnyArray, FloatArray, IntArray
from weakspot.core.heads import Head
from weakspot.core.seeding import generator
from weakspot.core.training_sets import WorstGroupObjective
from weakspot.repair.head_training.coordinates import Coordinates
from weakspot.repair.head_training.descent import Descent, Patience, Watcher, minimise
from weakspot.repair.head_training.objective import Beginning, Best, PenalisedLoss, Penalty
from weakspot.repair.head_training.problem import Problem, check_start
from weakspot.repair.head_training.worst_group import GroupObjectives

SOFTNESS = (1.0, 0.1, 0.01, 0.002)
LEAST_PAIRS, MOST_PAIRS = 3, 10
PAIRS_SHARE = 0.3


class ExactSolver:
    """Solves one problem, for one penalty after the other if need be."""

    def __init__(
        self,
        problem: Problem,
        beginning: Beginning,
        group_objectives: tuple[WorstGroupObjective, ...],
        patience: Patience,
        workers: Executor | None = None,
    ) -> None:
        self.coordinates = Coordinates.of(problem)
        self.begin = beginning.layer(problem, self.coordinates)
        self._anchor = beginning.anchor(self.begin)
        self._group_objectives = GroupObjectives(group_objectives, problem.shares)
        self._patience = patience
        self.objective = PenalisedLoss(
            problem, self.coordinates, self._group_objectives, workers=workers
        )
        affordable = int(PAIRS_SHARE * problem.features.nbytes / (2 * self.begin.nbytes))
        self._n_pairs = min(MOST_PAIRS, max(LEAST_PAIRS, affordable))

    def descend(self, penalty: float, begin: FloatArray, watcher: Watcher) -> Descent:
        """Return how the descent from a layer ended; maxima of group_objectives become sharper as it goes on."""
        self.objective.penalty_term = Penalty(strength=penalty, anchor=self._anchor)
        descent, n_steps = Descent(layer=begin, n_steps=0, has_converged=False), 0
        for softness in SOFTNESS if self._group_objectives else SOFTNESS[-1:]:
            if self._group_objectives:
                self.objective.soften(descent.layer, softness)
            patience = Patience(
                max_steps=self._patience.max_steps - n_steps,
                tolerance=self._patience.tolerance,
                n_pairs=self._n_pairs,
            )
            descent = minimise(self.objective, descent.layer, patience, watcher)
            n_steps += descent.n_steps
        return Descent(layer=descent.layer, n_steps=n_steps, has_converged=descent.has_converged)


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How gradient descent goes.

    Args:
        learning_rate: length of a step.
        momentum: what is kept of the former step.
        n_epochs: steps; each sees all samples.
        tolerance: largest gradient component at the end that counts as converged.
    """

    learning_rate: float
    momentum: float
    n_epochs: int
    tolerance: float


class GradientSolver:
    """Descends along the slope on features as they are; of each group_objective only the group that is worst at the time counts."""

    def __init__(
        self,
        problem: Problem,
        beginning: Beginning,
        group_objectives: tuple[WorstGroupObjective, ...],
        pace: Pace,
        workers: Executor | None = None,
    ) -> None:
        problem.check_features()
        self.coordinates = Coordinates.plain_features(problem.n_features)
        self.begin = beginning.layer(problem, self.coordinates)
        self._anchor = beginning.anchor(self.begin)
        self._pace = pace
        rivals = GroupObjectives(group_objectives, problem.shares)
        self.objective = PenalisedLoss(problem, self.coordinates, rivals, workers=workers)
        self.objective.temperatures = rivals.sharpest

    def descend(self, penalty: float, begin: FloatArray, watcher: Watcher) -> Descent:
        """Return how the descent from a layer ended; it goes on for all epochs, or until losses grow beyond all numbers."""
        self.objective.penalty_term = Penalty(
            strength=penalty, anchor=self._anchor, holds_bias=True
        )
        layer, velocity = begin, np.zeros_like(begin)
        for n_steps in range(self._pace.n_epochs + 1):
            with np.errstate(all="ignore"):
                here = self.objective.evaluate(layer)
            if not np.isfinite(here.worth):
                return Descent(layer=layer, n_steps=n_steps, has_converged=False)
            if not watcher.goes_on(layer, here.worth) or n_steps == self._pace.n_epochs:
                break
            velocity = np.float32(self._pace.momentum) * velocity + here.gradient
            layer = layer - np.float32(self._pace.learning_rate) * velocity
        has_converged = float(np.abs(here.gradient).max()) <= self._pace.tolerance
        return Descent(layer=layer, n_steps=n_steps, has_converged=has_converged)


PENALTIES = (3.0, 1.0, 3e-1, 1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 1e-4, 1e-5)
MATCHED_ROWS = 5_000
MATCHED_PRODUCTS = 2e8
MOST_RISES = 2


def matching_problem(features: FloatArray, targets: AnyArray, head: Head) -> Problem:
    """Return the unweighted problem that penalties are tried on: as many samples as are cheap, but enough to tell them apart."""
    rows = _some_rows(len(features), n_products=head.weights.size)
    part, truth = (features, targets) if rows is None else (features[rows], targets[rows])
    problem = Problem.of(part, truth, np.ones(len(part)), task=head.task, n_classes=len(head.bias))
    check_start(head, problem)
    return problem


def closest_penalty(solver: ExactSolver | GradientSolver, problem: Problem, head: Head) -> float:
    """Return the penalty whose result answers most like a head.

    Penalties are tried from the strongest on, each from the layer of the one before, until answers have become less alike twice.
    """
    wanted, layer = head.probabilities(problem.features), solver.begin
    distances: list[float] = []
    for penalty in PENALTIES:
        layer = solver.descend(penalty, layer, Best(None, solver.coordinates)).layer
        found = solver.coordinates.outwards(layer, head.task).probabilities(problem.features)
        distances.append(float(np.abs(found - wanted).mean(dtype=np.float64)))
        if len(distances) - 1 - int(np.nanargmin(distances)) >= MOST_RISES:
            break
    return PENALTIES[int(np.nanargmin(distances))]


def _some_rows(n_samples: int, *, n_products: int) -> IntArray | None:
    wanted = max(MATCHED_ROWS, int(MATCHED_PRODUCTS / n_products))
    if n_samples <= wanted:
        return None
    return np.sort(
        generator(0, "head_training", "matched").choice(n_samples, wanted, replace=False)
    )
