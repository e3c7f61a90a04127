"""Which penalty a given head was probably made with."""

import numpy as np

from weakspot.core.arrays import AnyArray, FloatArray, IntArray
from weakspot.core.heads import Head
from weakspot.core.seeding import generator
from weakspot.repair.head_training.exact import ExactSolver
from weakspot.repair.head_training.objective import Best
from weakspot.repair.head_training.problem import Problem, check_start
from weakspot.repair.head_training.sgd import GradientSolver

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
    return np.sort(generator(0, "head_training", "matched").choice(n_samples, wanted, replace=False))
