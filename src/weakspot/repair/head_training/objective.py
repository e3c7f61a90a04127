"""The penalised loss of a layer, as descents see it."""

from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Literal

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray
from weakspot.core.dataset import Task
from weakspot.core.heads import Head
from weakspot.repair.head_training.coordinates import Coordinates
from weakspot.repair.head_training.descent import Curvature, Evaluation
from weakspot.repair.head_training.losses import ChunkedLoss
from weakspot.repair.head_training.problem import Problem
from weakspot.repair.head_training.worst_group import GroupObjectives

HALF_A_SAMPLE = 0.5
LEAST_BEND = 1e-6
PATIENCE_STEPS = 20


@dataclass(frozen=True, kw_only=True, eq=False)
class Penalty:
    """The quadratic penalty.

    Args:
        strength: in units of the mean loss of a sample.
        anchor: [c, d + 1] what the layer is pulled to, None for nothing.
        holds_bias: whether biases are pulled as well.
    """

    strength: float
    anchor: FloatArray | None
    holds_bias: bool = False


class PenalisedLoss:
    """The loss of layers [c, d + 1] in given coordinates.

    Layers of classes that no sample has (`held`) stay as they are, and the mean of the other biases with them: otherwise the
    distance between the two would grow without end. Where no class is held, that mean changes nothing, and stays as well.
    """

    def __init__(
        self,
        problem: Problem,
        coordinates: Coordinates,
        group_objectives: GroupObjectives,
        *,
        workers: Executor | None = None,
    ) -> None:
        self._problem = problem
        self._coordinates = coordinates
        self._group_objectives = group_objectives
        self._held = held_classes(problem)
        self._is_centred = coordinates.subtracted is not None
        self._loss = ChunkedLoss(problem, coordinates.subtracted, workers)
        self.penalty_term = Penalty(strength=0.0, anchor=None)
        self.temperatures: tuple[float, ...] = ()

    def losses(self, layer: FloatArray) -> DoubleArray:
        """Return the loss [n] of each sample."""
        return self._loss.losses(*self._coordinates.plain(layer, is_centred=self._is_centred))

    def soften(self, layer: FloatArray, part: float) -> None:
        """Replace maxima of group_objectives by smooth ones that lie at most a part above them."""
        self.temperatures = self._group_objectives.temperatures(self.losses(layer), part)

    def evaluate(self, layer: FloatArray) -> Evaluation:
        """Return value, gradient and curvature at a layer."""
        counts = self._problem.shares
        if self._group_objectives:
            value, counts = self._group_objectives.softened(self.losses(layer), self.temperatures)
        weights, bias = self._coordinates.plain(layer, is_centred=self._is_centred)
        slopes = self._loss.slopes(weights, bias, counts)
        worth = (
            self._group_objectives.worst(slopes.losses)
            if self._group_objectives
            else float(counts @ slopes.losses)
        )
        gradient = self._coordinates.slope(slopes.weights, slopes.bias, is_centred=self._is_centred)
        pulled = self._add_pull(layer, gradient)
        self._project(gradient)
        return Evaluation(
            value=(value if self._group_objectives else worth) + pulled,
            worth=worth + pulled,
            gradient=gradient,
            curvature=_curvature(slopes.bends),
        )

    def precondition(self, embedding: FloatArray, curvature: Curvature) -> FloatArray:
        """Return an embedding divided by how sharply the loss bends along classes and directions, were both independent."""
        bends, axes = curvature.bends[:, None], curvature.axes
        found = np.empty_like(embedding)
        np.multiply(bends, self._coordinates.spectrum, out=found[:, :-1])
        found[:, -1:] = bends
        found += np.float32(self.penalty_term.strength + LEAST_BEND)
        np.divide(embedding if axes is None else axes.T @ embedding, found, out=found)
        if axes is not None:
            found = axes @ found
        self._project(found)
        return found

    def _add_pull(self, layer: FloatArray, gradient: FloatArray) -> float:
        width = layer.shape[1] if self.penalty_term.holds_bias else layer.shape[1] - 1
        away = (
            layer[:, :width].copy()
            if self.penalty_term.anchor is None
            else layer[:, :width] - self.penalty_term.anchor[:, :width]
        )
        squares = np.einsum("ij,ij->i", away, away)
        away *= np.float32(self.penalty_term.strength)
        gradient[:, :width] += away
        return 0.5 * self.penalty_term.strength * float(squares.sum(dtype=np.float64))

    def _project(self, embedding: FloatArray) -> None:
        has_held = bool(self._held.any())
        if has_held:
            embedding[self._held] = 0.0
        if self._problem.task is Task.SINGLE_LABEL and (
            has_held or not self.penalty_term.holds_bias
        ):
            embedding[~self._held, -1] -= embedding[~self._held, -1].mean()


def _curvature(bends: DoubleArray) -> Curvature:
    if bends.ndim == 1:
        return Curvature(bends=bends.astype(np.float32), axes=None)
    along, axes = np.linalg.eigh(bends)
    return Curvature(bends=np.maximum(along, 0.0).astype(np.float32), axes=axes.astype(np.float32))


def held_classes(problem: Problem) -> BoolArray:
    """Return which classes [c] nothing can be learnt of: no sample that counts has them, or, of labels, all do."""
    support = problem.support
    is_missing = support <= 0
    if problem.task is Task.SINGLE_LABEL:
        return np.asarray(is_missing)
    lacking = problem.shares @ ~problem.targets
    return np.asarray(is_missing | (lacking <= 0))


@dataclass(frozen=True, kw_only=True, eq=False)
class Beginning:
    """Where training begins.

    Args:
        head: the layer, None for nothing.
        towards: whether weights are pulled to nothing or to that layer.
    """

    head: Head | None
    towards: Literal["zero", "start"]

    def layer(self, problem: Problem, coordinates: Coordinates) -> FloatArray:
        """Return the layer to begin with: the given one, or nothing but low biases for classes that no sample has."""
        if self.head is not None:
            return coordinates.inwards(self.head)
        layer = np.zeros((problem.n_classes, problem.n_features + 1), np.float32)
        low = np.log(HALF_A_SAMPLE / (1 + len(problem.features)))
        layer[held_classes(problem), -1] = -low
        layer[problem.support <= 0, -1] = low
        return layer

    def anchor(self, layer: FloatArray) -> FloatArray | None:
        """Return what weights are pulled to, None for nothing."""
        return layer if self.towards == "start" else None


class Best:
    """The best layer met: by the loss on validation samples if there are any, else by the loss that is minimised."""

    def __init__(self, validation: Problem | None, coordinates: Coordinates) -> None:
        self._validation = validation
        self._coordinates = coordinates
        self._loss = (
            ChunkedLoss(validation, coordinates.subtracted) if validation is not None else None
        )
        self._since = 0
        self.layer: FloatArray | None = None
        self.worth = float("inf")
        self.judged = float("inf")

    def goes_on(self, layer: FloatArray, worth: float) -> bool:
        """Take note of a layer; False once validation samples have not gained for a while."""
        judged = self._judge(layer, worth)
        self._since += 1
        if judged < self.judged or self.layer is None:
            self.layer, self.worth, self.judged, self._since = layer, worth, judged, 0
        return self._validation is None or self._since < PATIENCE_STEPS

    def _judge(self, layer: FloatArray, worth: float) -> float:
        if self._validation is None or self._loss is None:
            return worth
        plain = self._coordinates.plain(layer, is_centred=self._coordinates.subtracted is not None)
        return float(self._validation.shares @ self._loss.losses(*plain))
