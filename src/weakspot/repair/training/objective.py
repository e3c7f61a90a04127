"""The penalised loss of a layer, as descents see it: losses of samples in chunks, and groups of which only the worst served counts."""

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Literal

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, FloatArray, IntArray
from weakspot.core.dataset import Task
from weakspot.core.heads import Head, WorstGroupObjective
from weakspot.repair.training.descent import Curvature, Evaluation
from weakspot.repair.training.problem import FEW_CLASSES, Coordinates, Problem

SUMMED_AT_ONCE = 32


@dataclass(frozen=True, kw_only=True, eq=False)
class Slopes:
    """The weighted loss of a layer and how it changes.

    Args:
        losses: [n] loss of each sample.
        weights: [c, d] slope along weights.
        bias: [c] slope along biases.
        bends: [c] or [c, c], how sharply the loss bends along classes: the weighted mean of p (1 - p), and for few classes that
            exclude each other also of - p q between them.
    """

    losses: DoubleArray
    weights: FloatArray
    bias: FloatArray
    bends: DoubleArray


class ChunkedLoss:
    """Losses of a problem; logits exist for one chunk only, transposed to [c, rows], so that sums over classes run along rows.

    Products are taken in single precision and summed in a fixed order, whoever works on them; sums of losses are taken in double
    precision.
    """

    def __init__(
        self, problem: Problem, centre: FloatArray | None = None, workers: Executor | None = None
    ) -> None:
        self._problem = problem
        self._centre = centre
        self._workers = workers
        self._is_softmax = problem.task is Task.SINGLE_LABEL
        self._buffer: FloatArray = np.zeros(0, np.float32)

    def losses(self, weights: FloatArray, bias: FloatArray) -> DoubleArray:
        """Return the loss [n] of each sample."""
        found = np.empty(len(self._problem.features))
        for part, values in self._chunks():
            logits = self._logits(self._centred(values), weights, bias)
            found[part] = (_softmax if self._is_softmax else _sigmoid)(
                logits, self._problem.targets[part]
            )
        return found

    def slopes(self, weights: FloatArray, bias: FloatArray, shares: DoubleArray) -> Slopes:
        """Return losses, and slope and curvature of their sum weighted by shares [n]."""
        found, counts = np.empty(len(self._problem.features)), shares.astype(np.float32)
        by_weights, by_bias = np.zeros_like(weights), np.zeros_like(bias)
        bends = np.zeros((len(bias),) * (2 if self._is_softmax and len(bias) <= FEW_CLASSES else 1))

        def measured(chunk: tuple[slice, FloatArray]) -> Slopes:
            part, values = chunk
            inputs, targets, counted = (
                self._centred(values),
                self._problem.targets[part],
                counts[part],
            )
            likely = self._logits(inputs, weights, bias)
            losses = (_softmax if self._is_softmax else _sigmoid)(likely, targets)
            part_bends = _bends(likely, counted, is_square=bends.ndim > 1)
            _subtract_targets(likely, targets, counted, is_softmax=self._is_softmax)
            return Slopes(
                losses=losses, weights=likely @ inputs, bias=likely.sum(axis=1), bends=part_bends
            )

        chunks = list(self._chunks())
        for (part, _), one in zip(
            chunks,
            (map if self._workers is None else self._workers.map)(measured, chunks),
            strict=True,
        ):
            found[part] = one.losses
            by_weights += one.weights
            by_bias += one.bias
            bends += one.bends
        return Slopes(losses=found, weights=by_weights, bias=by_bias, bends=bends)

    def _chunks(self) -> Iterator[tuple[slice, FloatArray]]:
        return self._problem.chunks(
            are_copied=self._workers is not None or self._centre is not None
        )

    def _centred(self, values: FloatArray) -> FloatArray:
        return values if self._centre is None else values - self._centre

    def _logits(self, inputs: FloatArray, weights: FloatArray, bias: FloatArray) -> FloatArray:
        wanted = len(bias) * len(inputs)
        if self._workers is None and len(self._buffer) < wanted:
            self._buffer = np.empty(wanted, np.float32)
        kept = self._buffer if self._workers is None else np.empty(wanted, np.float32)
        logits = kept[:wanted].reshape(len(bias), len(inputs))
        np.matmul(weights, inputs.T, out=logits)
        logits += bias[:, None]
        return logits


def _softmax(logits: FloatArray, codes: AnyArray) -> DoubleArray:
    """Turn logits [c, rows] into probabilities in place and return losses [rows]."""
    logits -= logits.max(axis=0)
    picked = logits[codes, np.arange(len(codes))]
    np.exp(logits, out=logits)
    totals = np.zeros(logits.shape[1])
    for first in range(0, len(logits), SUMMED_AT_ONCE):
        totals += logits[first : first + SUMMED_AT_ONCE].sum(axis=0)
    logits *= (1.0 / totals).astype(np.float32)
    return np.asarray(np.log(totals) - picked, dtype=np.float64)


def _sigmoid(logits: FloatArray, targets: AnyArray) -> DoubleArray:
    """Turn logits [c, rows] into probabilities in place and return losses [rows], summed over labels."""
    powers = np.exp(-np.abs(logits))
    losses = np.log1p(powers) + np.where(targets.T, np.maximum(-logits, 0), np.maximum(logits, 0))
    np.divide(np.where(logits > 0, np.float32(1), powers), 1 + powers, out=logits)
    return np.asarray(losses.sum(axis=0, dtype=np.float64))


def _bends(likely: FloatArray, counted: FloatArray, *, is_square: bool) -> DoubleArray:
    """Return how sharply the loss bends along classes for probabilities [c, rows]."""
    means = likely @ counted
    if is_square:
        return np.asarray(np.diag(means) - (likely * counted) @ likely.T, dtype=np.float64)
    return np.asarray(means - np.einsum("ij,ij,j->i", likely, likely, counted), dtype=np.float64)


def _subtract_targets(
    likely: FloatArray, targets: AnyArray, counted: FloatArray, *, is_softmax: bool
) -> None:
    """Turn probabilities [c, rows] into weighted residuals in place."""
    likely *= counted
    if is_softmax:
        likely[targets, np.arange(len(targets))] -= counted
    else:
        likely -= targets.T * counted


MIN_TEMPERATURE = 1e-7


@dataclass(frozen=True, kw_only=True, eq=False)
class _Group:
    positions: IntArray
    inner: DoubleArray

    def loss(self, losses: DoubleArray) -> float:
        return float(self.inner @ losses[self.positions])


@dataclass(frozen=True, kw_only=True, eq=False)
class Rivals:
    """One group_objective: what it counts, and its groups; a group whose samples all count nothing takes no part.

    Args:
        share: what its samples count together.
        groups: positions of each group that takes part, with what each sample counts inside it.
    """

    share: float
    groups: tuple[_Group, ...]

    @classmethod
    def of(cls, group_objective: WorstGroupObjective, shares: DoubleArray) -> "Rivals":
        totals = [float(shares[group].sum()) for group in group_objective]
        groups = [
            _Group(positions=group, inner=shares[group] / total)
            for group, total in zip(group_objective, totals, strict=True)
            if total > 0
        ]
        return cls(share=sum(totals), groups=tuple(groups))

    def losses(self, losses: DoubleArray) -> DoubleArray:
        return np.array([group.loss(losses) for group in self.groups])


class GroupObjectives:
    """The loss in which each group_objective counts by its worst group, and samples in no group_objective by themselves."""

    def __init__(
        self, group_objectives: tuple[WorstGroupObjective, ...], shares: DoubleArray
    ) -> None:
        self._rivals = tuple(
            rivals
            for rivals in (
                Rivals.of(group_objective, shares) for group_objective in group_objectives
            )
            if rivals.groups
        )
        self._free = shares.copy()
        for rivals in self._rivals:
            for group in rivals.groups:
                self._free[group.positions] = 0.0

    def __bool__(self) -> bool:
        return bool(self._rivals)

    def worst(self, losses: DoubleArray) -> float:
        """Return the loss that counts, for losses [n] of samples."""
        return float(self._free @ losses) + sum(
            rivals.share * float(rivals.losses(losses).max()) for rivals in self._rivals
        )

    def temperatures(self, losses: DoubleArray, part: float) -> tuple[float, ...]:
        """Return for each group_objective how soft its maximum may be to lie at most a part above the true one."""
        return tuple(
            max(
                part * float(rivals.losses(losses).max()) / np.log(1.0 + len(rivals.groups)),
                MIN_TEMPERATURE,
            )
            for rivals in self._rivals
        )

    def softened(
        self, losses: DoubleArray, temperatures: tuple[float, ...]
    ) -> tuple[float, DoubleArray]:
        """Return the loss with soft maxima, and how much each sample [n] counts in it."""
        value, counts = float(self._free @ losses), self._free.copy()
        for rivals, temperature in zip(self._rivals, temperatures, strict=True):
            found = rivals.losses(losses)
            powers = np.exp((found - found.max()) / temperature)
            value += rivals.share * float(found.max() + temperature * np.log(powers.sum()))
            for group, power in zip(rivals.groups, powers / powers.sum(), strict=True):
                counts[group.positions] = rivals.share * power * group.inner
        return value, counts

    @property
    def sharpest(self) -> tuple[float, ...]:
        """Return temperatures at which soft maxima are true ones."""
        return tuple(MIN_TEMPERATURE for _ in self._rivals)


def group_losses(
    group_objectives: tuple[WorstGroupObjective, ...], shares: DoubleArray, losses: DoubleArray
) -> tuple[tuple[float, ...], ...]:
    return tuple(
        tuple(
            float(shares[group] @ losses[group] / shares[group].sum())
            if shares[group].sum() > 0
            else float("nan")
            for group in group_objective
        )
        for group_objective in group_objectives
    )


HALF_A_SAMPLE = 0.5
MIN_BEND = 1e-6
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
        found += np.float32(self.penalty_term.strength + MIN_BEND)
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
