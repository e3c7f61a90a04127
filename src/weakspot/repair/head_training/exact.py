"""The exact solver: preconditioned L-BFGS in the principal directions of standardised features."""

from concurrent.futures import Executor

from weakspot.core.arrays import FloatArray
from weakspot.core.training_sets import Contest
from weakspot.repair.head_training.contests import Contests
from weakspot.repair.head_training.coordinates import Coordinates
from weakspot.repair.head_training.descent import Descent, Patience, Watcher, minimise
from weakspot.repair.head_training.objective import Beginning, PenalisedLoss, Pull
from weakspot.repair.head_training.problem import Problem

SOFTNESS = (1.0, 0.1, 0.01, 0.002)
LEAST_PAIRS, MOST_PAIRS = 3, 10
PAIRS_SHARE = 0.3


class ExactSolver:
    """Solves one problem, for one penalty after the other if need be."""

    def __init__(
        self,
        problem: Problem,
        beginning: Beginning,
        contests: tuple[Contest, ...],
        patience: Patience,
        workers: Executor | None = None,
    ) -> None:
        self.coordinates = Coordinates.of(problem)
        self.begin = beginning.layer(problem, self.coordinates)
        self._anchor = beginning.anchor(self.begin)
        self._contests = Contests(contests, problem.shares)
        self._patience = patience
        self.objective = PenalisedLoss(problem, self.coordinates, self._contests, workers=workers)
        affordable = int(PAIRS_SHARE * problem.features.nbytes / (2 * self.begin.nbytes))
        self._n_pairs = min(MOST_PAIRS, max(LEAST_PAIRS, affordable))

    def descend(self, penalty: float, begin: FloatArray, watcher: Watcher) -> Descent:
        """Return how the descent from a layer ended; maxima of contests become sharper as it goes on."""
        self.objective.pull = Pull(strength=penalty, anchor=self._anchor)
        descent, n_steps = Descent(layer=begin, n_steps=0, has_converged=False), 0
        for softness in SOFTNESS if self._contests else SOFTNESS[-1:]:
            if self._contests:
                self.objective.soften(descent.layer, softness)
            patience = Patience(
                max_steps=self._patience.max_steps - n_steps, tolerance=self._patience.tolerance, n_pairs=self._n_pairs
            )
            descent = minimise(self.objective, descent.layer, patience, watcher)
            n_steps += descent.n_steps
        return Descent(layer=descent.layer, n_steps=n_steps, has_converged=descent.has_converged)
