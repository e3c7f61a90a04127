"""Exact training of a last linear layer on frozen features."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, FloatArray
from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError, DataError, NotEnoughDataError
from weakspot.core.heads import Head

CHUNK_ROWS = 8_192
PENALTIES = (1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0)
MATCHED_ROWS = 5_000
LEAST_DEVIATION = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainedHead:
    """A trained last layer.

    Args:
        head: the layer, to be applied to features as they are.
        loss: weighted mean loss with the penalty.
        n_steps: steps of the solver.
        has_converged: whether it stopped by itself.
    """

    head: Head
    loss: float
    n_steps: int
    has_converged: bool


@dataclass(frozen=True, kw_only=True)
class HeadTrainer:
    """Weighted logistic regression, softmax or one sigmoid per label, solved by L-BFGS with the exact gradient.

    Features are standardised inside, so that one penalty suits all scales; the result applies to features as they are. The same
    input gives the same layer, whatever it starts from, because the problem has a single optimum.

    Args:
        penalty: strength of the quadratic penalty, in units of the mean loss of a sample.
        towards: what weights are pulled to: nothing, or the layer training starts from.
        max_steps: of the solver.
        tolerance: largest gradient component at which it stops.
    """

    penalty: float = 1e-3
    towards: Literal["zero", "start"] = "zero"
    max_steps: int = 500
    tolerance: float = 1e-5

    def __post_init__(self) -> None:
        """Refuse settings that cannot mean anything."""
        if self.penalty <= 0:
            raise ConfigError("The setting penalty must be positive.", given=self.penalty)
        if self.max_steps < 1:
            raise ConfigError("The setting max_steps must be at least 1.", given=self.max_steps)

    def matched(self, features: FloatArray, targets: BoolArray, head: Head) -> "HeadTrainer":
        """Return the same trainer with the penalty whose unweighted result answers most like a given head.

        A repair is to show what weights do. With another penalty than the one the classifier was made with, retraining would
        change its answers even without weights, and the repair would be praised or blamed for it.
        """
        every = max(1, len(features) // MATCHED_ROWS)
        part, truth = features[::every], targets[::every]
        wanted = head.probabilities(part).astype(np.float64)
        weights = np.ones(len(part))

        def distance(penalty: float) -> float:
            found = replace(self, penalty=penalty).train(part, truth, weights, task=head.task, start=head).head
            return float(np.abs(found.probabilities(part) - wanted).mean())

        return replace(self, penalty=min(PENALTIES, key=distance))

    def train(
        self, features: FloatArray, targets: BoolArray, weights: DoubleArray, *, task: Task, start: Head | None = None
    ) -> TrainedHead:
        """Train on features [n, d] with targets [n, c] (which labels each sample has) and sample weights [n]."""
        from scipy.optimize import minimize

        _check(features, targets, weights, start)
        if task is Task.SINGLE_LABEL and not np.all(targets.sum(axis=1) == 1):
            raise DataError("Every sample of a single-label task needs exactly one label.", fix="Leave out unlabelled samples.")
        scaling = _Scaling.of(features)
        begin = scaling.inwards(start) if start is not None else np.zeros((targets.shape[1], features.shape[1] + 1))
        anchor = begin[:, :-1] if self.towards == "start" else np.zeros_like(begin[:, :-1])
        best = _Best(begin)
        loss_of = _loss(features, targets, weights / weights.sum(), scaling, task)

        def objective(flat: DoubleArray) -> tuple[float, DoubleArray]:
            layer = flat.reshape(begin.shape)
            loss, gradient = loss_of(layer)
            pulled = layer[:, :-1] - anchor
            gradient[:, :-1] += self.penalty * pulled
            loss += 0.5 * self.penalty * float(np.square(pulled).sum())
            best.offer(loss, layer)
            return loss, gradient.ravel()

        options = {"maxiter": self.max_steps, "maxfun": 2 * self.max_steps, "gtol": self.tolerance, "ftol": 1e-12, "maxcor": 20}
        result = minimize(objective, begin.ravel(), jac=True, method="L-BFGS-B", options=options)
        head = scaling.outwards(best.layer, task)
        return TrainedHead(head=head, loss=best.loss, n_steps=int(result.nit), has_converged=bool(result.success))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Scaling:
    """Centre [d] and deviation [d] of features, applied to layers [c, d + 1] instead of to the features."""

    centre: DoubleArray
    deviation: DoubleArray

    @classmethod
    def of(cls, features: FloatArray) -> "_Scaling":
        centre = features.mean(axis=0, dtype=np.float64)
        squares = np.zeros_like(centre)
        for start in range(0, len(features), CHUNK_ROWS):
            squares += np.square(features[start : start + CHUNK_ROWS] - centre).sum(axis=0)
        deviation = np.sqrt(squares / len(features))
        return cls(centre=centre, deviation=np.where(deviation > LEAST_DEVIATION, deviation, 1.0))

    def inwards(self, head: Head) -> DoubleArray:
        """Return the layer for scaled features that answers like a head on plain ones."""
        weights = np.asarray(head.weights, dtype=np.float64)
        return np.column_stack([weights * self.deviation, head.bias + weights @ self.centre])

    def raw(self, layer: DoubleArray) -> tuple[DoubleArray, DoubleArray]:
        """Return weights [c, d] and bias [c] for plain features."""
        weights = layer[:, :-1] / self.deviation
        return weights, layer[:, -1] - weights @ self.centre

    def outwards(self, layer: DoubleArray, task: Task) -> Head:
        weights, bias = self.raw(layer)
        return Head(weights=weights.astype(np.float32), bias=bias.astype(np.float32), task=task)


class _Best:
    """The best layer met so far."""

    def __init__(self, layer: DoubleArray) -> None:
        self.loss = float("inf")
        self.layer = layer

    def offer(self, loss: float, layer: DoubleArray) -> None:
        if loss < self.loss:
            self.loss, self.layer = loss, layer.copy()


def _loss(
    features: FloatArray, targets: BoolArray, shares: DoubleArray, scaling: _Scaling, task: Task
) -> Callable[[DoubleArray], tuple[float, DoubleArray]]:
    """Return the function from a layer [c, d + 1] to its weighted loss and gradient; features are read in chunks."""
    residuals_of = _softmax_residuals if task is Task.SINGLE_LABEL else _sigmoid_residuals

    def loss_and_gradient(layer: DoubleArray) -> tuple[float, DoubleArray]:
        weights, bias = scaling.raw(layer)
        loss, gradient = 0.0, np.zeros_like(layer)
        for start in range(0, len(features), CHUNK_ROWS):
            part = slice(start, start + CHUNK_ROWS)
            values = features[part]
            logits = (values @ weights.astype(values.dtype).T).astype(np.float64) + bias
            losses, residuals = residuals_of(logits, targets[part])
            residuals *= shares[part, None]
            loss += float(losses @ shares[part])
            gradient[:, :-1] += residuals.astype(values.dtype).T @ values
            gradient[:, -1] += residuals.sum(axis=0)
        gradient[:, :-1] = (gradient[:, :-1] - gradient[:, -1:] * scaling.centre) / scaling.deviation
        return loss, gradient

    return loss_and_gradient


def _softmax_residuals(logits: DoubleArray, targets: BoolArray) -> tuple[DoubleArray, DoubleArray]:
    logits = logits - logits.max(axis=1, keepdims=True)
    powers = np.exp(logits)
    totals = powers.sum(axis=1)
    losses = np.log(totals) - logits[targets]
    return losses, powers / totals[:, None] - targets


def _sigmoid_residuals(logits: DoubleArray, targets: BoolArray) -> tuple[DoubleArray, DoubleArray]:
    losses = np.logaddexp(0.0, np.where(targets, -logits, logits)).sum(axis=1)
    return losses, np.asarray(1.0 / (1.0 + np.exp(-np.clip(logits, -60.0, 60.0))) - targets)


def _check(features: AnyArray, targets: BoolArray, weights: AnyArray, start: Head | None) -> None:
    if not len(features):
        raise NotEnoughDataError("There is no labelled sample to train the last layer on.", fix="Label training samples.")
    if not len(features) == len(targets) == len(weights):
        raise DataError(
            "Features, targets and weights must have the same length.", given=(len(features), len(targets), len(weights))
        )
    if not np.isfinite(features).all():
        raise DataError("Some features are missing or not finite.", fix="Leave out samples without features.")
    if np.any(weights < 0) or not weights.sum() > 0:
        raise DataError("Weights must not be negative, and not all zero.")
    if start is not None and start.weights.shape != (targets.shape[1], features.shape[1]):
        raise DataError(
            "The last layer to start from has another shape.",
            given=start.weights.shape,
            fix=f"It must be {(targets.shape[1], features.shape[1])}.",
        )
