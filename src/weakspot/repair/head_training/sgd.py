"""Full-batch gradient descent with momentum and weight decay, as papers on repair use it."""

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import FloatArray
from weakspot.core.training_sets import Contest
from weakspot.repair.head_training.contests import Contests
from weakspot.repair.head_training.coordinates import Coordinates
from weakspot.repair.head_training.descent import Descent, Watcher
from weakspot.repair.head_training.objective import Beginning, PenalisedLoss, Pull
from weakspot.repair.head_training.problem import Problem


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
    """Descends along the slope on features as they are; of each contest only the group that is worst at the time counts."""

    def __init__(
        self, problem: Problem, beginning: Beginning, contests: tuple[Contest, ...], pace: Pace, workers: Executor | None = None
    ) -> None:
        problem.check_features()
        self.coordinates = Coordinates.plain_features(problem.n_features)
        self.begin = beginning.layer(problem, self.coordinates)
        self._anchor = beginning.anchor(self.begin)
        self._pace = pace
        rivals = Contests(contests, problem.shares)
        self.objective = PenalisedLoss(problem, self.coordinates, rivals, workers=workers)
        self.objective.temperatures = rivals.sharpest

    def descend(self, penalty: float, begin: FloatArray, watcher: Watcher) -> Descent:
        """Return how the descent from a layer ended; it goes on for all epochs, or until losses grow beyond all numbers."""
        self.objective.pull = Pull(strength=penalty, anchor=self._anchor, holds_bias=True)
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
