"""Training of a last linear layer on frozen features: exactly, or by gradient descent as papers on repair use it."""

from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np

from weakspot.core.arrays import AnyArray, DoubleArray, FloatArray, IntArray, generator
from weakspot.core.bounds import Bounds, Count, Positive, check_bounds
from weakspot.core.dataset import Task
from weakspot.core.errors import DataError
from weakspot.core.heads import Head, WorstGroupObjective
from weakspot.core.repairs import Solver as SolverName
from weakspot.repair.training.objective import (
    Best,
    Coordinates,
    Descent,
    GroupObjectives,
    PenalisedLoss,
    Problem,
    check_group_objectives,
    check_start,
    first_layer,
    group_losses,
    minimise,
    workers_for,
)

SOFTNESS = (1.0, 0.1, 0.01, 0.002)
MIN_PAIRS, MAX_PAIRS = 3, 10
PAIRS_SHARE = 0.3


class Solver:
    """Solves one problem, for one penalty after the other if need be.

    Args:
        problem: what is trained on.
        start: the layer to begin with, None for nothing.
        group_objectives: groups of positions of which only the worst served counts.
        settings: of the trainer.
        coordinates: in which layers are trained.
        workers: threads that chunks are shared out to.
    """

    def __init__(
        self,
        problem: Problem,
        start: Head | None,
        group_objectives: tuple[WorstGroupObjective, ...],
        settings: "HeadTrainer",
        *,
        coordinates: Coordinates,
        workers: Executor | None = None,
    ) -> None:
        self.coordinates = coordinates
        self.begin = first_layer(start, problem, coordinates)
        self._settings = settings
        self._rivals = GroupObjectives(group_objectives, problem.shares)
        self.objective = PenalisedLoss(
            problem,
            coordinates,
            self._rivals,
            anchor=self.begin if settings.towards == "start" else None,
            holds_bias=settings.solver == "sgd",
            workers=workers,
        )
        affordable = int(PAIRS_SHARE * problem.features.nbytes / (2 * self.begin.nbytes))
        self._n_pairs = min(MAX_PAIRS, max(MIN_PAIRS, affordable))

    def descend(self, penalty: float, begin: FloatArray, watcher: Best) -> Descent:
        """Return how the descent from a layer ended, by the solver of the settings."""
        self.objective.penalty = penalty
        if self._settings.solver == "sgd":
            return self._along_the_slope(begin, watcher)
        descent, n_steps = Descent(layer=begin, n_steps=0, has_converged=False), 0
        # Maxima over groups become sharper as it goes on.
        for softness in SOFTNESS if self._rivals else SOFTNESS[-1:]:
            if self._rivals:
                self.objective.soften(descent.layer, softness)
            descent = minimise(
                self.objective,
                descent.layer,
                watcher,
                max_steps=self._settings.max_steps - n_steps,
                tolerance=self._settings.tolerance,
                n_pairs=self._n_pairs,
            )
            n_steps += descent.n_steps
        return replace(descent, n_steps=n_steps)

    def _along_the_slope(self, begin: FloatArray, watcher: Best) -> Descent:
        """Go on for all epochs, or until losses grow beyond all numbers; of groups only the worst at the time counts."""
        settings = self._settings
        self.objective.temperatures = self._rivals.sharpest
        layer, velocity = begin, np.zeros_like(begin)
        for n_steps in range(settings.n_epochs + 1):
            with np.errstate(all="ignore"):
                here = self.objective.evaluate(layer)
            if not np.isfinite(here.worth):
                return Descent(layer=layer, n_steps=n_steps, has_converged=False)
            if not watcher.goes_on(layer, here.worth) or n_steps == settings.n_epochs:
                break
            velocity = np.float32(settings.momentum) * velocity + here.gradient
            layer = layer - np.float32(settings.learning_rate) * velocity
        has_converged = float(np.abs(here.gradient).max()) <= settings.tolerance
        return Descent(layer=layer, n_steps=n_steps, has_converged=has_converged)


PENALTIES = (3.0, 1.0, 3e-1, 1e-1, 3e-2, 1e-2, 3e-3, 1e-3, 1e-4, 1e-5)
MATCHED_ROWS = 5_000
MATCHED_PRODUCTS = 2e8
MAX_RISES = 2


def matching_problem(features: FloatArray, targets: AnyArray, head: Head) -> Problem:
    """Return the unweighted problem that penalties are tried on: as many samples as are cheap, but enough to tell them apart."""
    rows = _some_rows(len(features), n_products=head.weights.size)
    part, truth = (features, targets) if rows is None else (features[rows], targets[rows])
    problem = Problem.of(part, truth, np.ones(len(part)), task=head.task, n_classes=len(head.bias))
    check_start(head, problem)
    return problem


def closest_penalty(solver: Solver, problem: Problem, head: Head) -> float:
    """Return the penalty whose result answers most like a head.

    Penalties are tried from the strongest on, each from the layer of the one before, until answers have become less alike twice.
    """
    wanted, layer = head.probabilities(problem.features), solver.begin
    distances: list[float] = []
    for penalty in PENALTIES:
        layer = solver.descend(penalty, layer, Best(None, solver.coordinates)).layer
        found = solver.coordinates.outwards(layer, head.task).probabilities(problem.features)
        distances.append(float(np.abs(found - wanted).mean(dtype=np.float64)))
        if len(distances) - 1 - int(np.nanargmin(distances)) >= MAX_RISES:
            break
    return PENALTIES[int(np.nanargmin(distances))]


def _some_rows(n_samples: int, *, n_products: int) -> IntArray | None:
    wanted = max(MATCHED_ROWS, int(MATCHED_PRODUCTS / n_products))
    if n_samples <= wanted:
        return None
    return np.sort(
        generator(0, "head_training", "matched").choice(n_samples, wanted, replace=False)
    )


MATCHED_TOLERANCE = 1e-3
Validation = tuple[FloatArray, AnyArray, DoubleArray]


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainedHead:
    """A trained last layer.

    Args:
        head: the layer, to be applied to features as they are.
        loss: weighted mean loss on the training samples with the penalty; of group objectives the worst group counts.
        n_steps: steps of the solver.
        has_converged: whether the gradient became small, or single precision allowed no further gain.
        missing_classes: codes of classes that no sample with weight has; their layers were not trained.
        group_losses: mean loss of each group of each group objective.
        validation_loss: mean loss on the validation samples that decided which layer was kept, None without any.
    """

    head: Head
    loss: float
    n_steps: int
    has_converged: bool
    missing_classes: tuple[int, ...] = ()
    group_losses: tuple[tuple[float, ...], ...] = ()
    validation_loss: float | None = None


@dataclass(frozen=True, kw_only=True)
class HeadTrainer:
    """Weighted logistic regression, softmax or one sigmoid per label, on frozen features.

    `exact` solves for the one optimum by L-BFGS. Features are standardised inside, so that one penalty suits all scales, and
    biases are not penalised; the result applies to features as they are. The same input gives the same layer bit for bit on one
    machine, and up to the tolerance whatever it starts from.

    `sgd` is the full-batch descent of the Refine paper (rate 0.2, momentum 0.9, weight decay 5e-4, 1000 epochs). It takes
    features as they are: nothing is standardised, and weight decay, which is the penalty, also pulls biases. Features with large
    values can make it diverge; then the best layer met is what comes back, and `has_converged` is False.

    Of a class that no sample with weight has, nothing can be learnt. Its layer stays that of `start`, or without one has no
    weights and the bias of half a sample, so that it never wins. The mean bias of the other classes is then kept as it was.

    Args:
        penalty: strength of the quadratic penalty, in units of the mean loss of a sample.
        towards: what weights are pulled to: nothing, or the layer training starts from.
        solver: exact, or stochastic gradient descent as in papers.
        max_steps: of the exact solver.
        tolerance: largest gradient component that counts as converged; the exact solver stops there.
        learning_rate: of sgd.
        momentum: of sgd.
        n_epochs: of sgd.
    """

    penalty: Positive = 1e-3
    towards: Literal["zero", "start"] = "zero"
    solver: SolverName = "exact"
    max_steps: Count = 500
    tolerance: Positive = 1e-5
    learning_rate: Positive = 0.2
    momentum: Annotated[float, Bounds(ge=0, lt=1)] = 0.9
    n_epochs: Count = 1_000

    def __post_init__(self) -> None:
        check_bounds(self)

    def train(
        self,
        features: FloatArray,
        targets: AnyArray,
        weights: DoubleArray,
        *,
        task: Task,
        start: Head | None = None,
        group_objectives: tuple[WorstGroupObjective, ...] = (),
        validation: Validation | None = None,
        n_classes: int | None = None,
    ) -> TrainedHead:
        """Train on features [n, d] with sample weights [n].

        Args:
            features: one row a sample.
            targets: which labels each sample has [n, c]; for single-label tasks also codes [n], with `n_classes`.
            weights: what each sample counts; only their proportions matter.
            task: softmax or one sigmoid per label.
            start: the layer to begin with.
            group_objectives: groups of positions of which only the one with the largest mean loss counts, with the weight of all.
            validation: features, targets and weights of samples that decide which of the layers met is kept, and when to stop.
            n_classes: needed where targets are codes.

        Raises:
            DataError: if features, targets, weights, start, group_objectives or validation samples cannot be used.
            NotEnoughDataError: if there is no sample.
        """
        if n_classes is None and start is not None and np.ndim(targets) == 1:
            n_classes = len(start.bias)
        problem = Problem.of(features, targets, weights, task=task, n_classes=n_classes)
        check_start(start, problem)
        check_group_objectives(group_objectives, len(features))
        best_of = _validation(validation, problem)
        with workers_for(problem) as workers:
            solver = self.solver_of(problem, start, group_objectives, workers)
            best = Best(best_of, solver.coordinates)
            descent = solver.descend(self.penalty, solver.begin, best)
            layer = best.layer if best.layer is not None else solver.begin
            lost = (
                group_losses(group_objectives, problem.shares, solver.objective.losses(layer))
                if group_objectives
                else ()
            )
        return TrainedHead(
            head=solver.coordinates.outwards(layer, task),
            loss=best.worth,
            n_steps=descent.n_steps,
            has_converged=descent.has_converged,
            missing_classes=tuple(np.flatnonzero(problem.support <= 0).tolist()),
            group_losses=lost,
            validation_loss=best.judged if validation is not None else None,
        )

    def matched(self, features: FloatArray, targets: AnyArray, head: Head) -> "HeadTrainer":
        """Return the same trainer with the penalty whose unweighted result answers most like a given head.

        A repair is to show what weights do. With another penalty than the one the classifier was made with, retraining would
        change its answers even without weights, and the repair would be praised or blamed for it.
        """
        problem = matching_problem(features, targets, head)
        rough = replace(
            self,
            tolerance=max(self.tolerance, MATCHED_TOLERANCE),
            n_epochs=max(1, self.n_epochs // len(PENALTIES)),
        )
        with workers_for(problem) as workers:
            solver = rough.solver_of(problem, head, workers=workers)
            return replace(self, penalty=closest_penalty(solver, problem, head))

    def solver_of(
        self,
        problem: Problem,
        start: Head | None,
        group_objectives: tuple[WorstGroupObjective, ...] = (),
        workers: Executor | None = None,
    ) -> Solver:
        """Return what solves a problem; `sgd` takes features as they are, which must all be numbers."""
        if self.solver == "exact":
            coordinates = Coordinates.of(problem)
        else:
            problem.check_features()
            coordinates = Coordinates.plain_features(problem.n_features)
        return Solver(
            problem, start, group_objectives, self, coordinates=coordinates, workers=workers
        )


def _validation(given: Validation | None, problem: Problem) -> Problem | None:
    if given is None:
        return None
    features, targets, weights = given
    if not len(features):
        raise DataError(
            "There is no validation sample to choose the best layer by.",
            fix="Leave validation samples out altogether.",
        )
    found = Problem.of(features, targets, weights, task=problem.task, n_classes=problem.n_classes)
    if found.n_features != problem.n_features:
        raise DataError(
            "Validation features have another width.",
            given=found.n_features,
            fix=f"It must be {problem.n_features}.",
        )
    found.check_features()
    return found
