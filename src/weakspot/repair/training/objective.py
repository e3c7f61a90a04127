"""The penalised loss of a layer, with groups of which only the worst served counts, and the descent to its lowest point.

The descent is L-BFGS with a preconditioner, few pairs in single precision, and steps that never go up.
"""

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, FloatArray, IntArray
from weakspot.core.dataset import Task
from weakspot.core.heads import Head, WorstGroupObjective
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
class Rivals:
    """Groups of which only the worst counts; a group whose samples all count nothing takes no part.

    Args:
        share: what their samples count together.
        groups: positions of each group that takes part, with what each sample counts inside it.
    """

    share: float
    groups: tuple[tuple[IntArray, DoubleArray], ...]

    @classmethod
    def of(cls, group_objective: WorstGroupObjective, shares: DoubleArray) -> "Rivals":
        totals = [float(shares[group].sum()) for group in group_objective]
        groups = tuple(
            (group, shares[group] / total)
            for group, total in zip(group_objective, totals, strict=True)
            if total > 0
        )
        return cls(share=sum(totals), groups=groups)

    def losses(self, losses: DoubleArray) -> DoubleArray:
        return np.array([float(inner @ losses[group]) for group, inner in self.groups])


class GroupObjectives:
    """The loss in which each set of groups counts by its worst group, and samples in no group by themselves."""

    def __init__(
        self, group_objectives: tuple[WorstGroupObjective, ...], shares: DoubleArray
    ) -> None:
        every = (Rivals.of(group_objective, shares) for group_objective in group_objectives)
        self._rivals = tuple(rivals for rivals in every if rivals.groups)
        self._free = shares.copy()
        for rivals in self._rivals:
            for group, _ in rivals.groups:
                self._free[group] = 0.0

    def __bool__(self) -> bool:
        return bool(self._rivals)

    def worst(self, losses: DoubleArray) -> float:
        """Return the loss that counts, for losses [n] of samples."""
        return float(self._free @ losses) + sum(
            rivals.share * float(rivals.losses(losses).max()) for rivals in self._rivals
        )

    def temperatures(self, losses: DoubleArray, part: float) -> tuple[float, ...]:
        """Return for each set of groups how soft its maximum may be to lie at most a part above the true one."""
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
            for (group, inner), power in zip(rivals.groups, powers / powers.sum(), strict=True):
                counts[group] = rivals.share * power * inner
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Curvature:
    """How sharply a function bends along classes.

    Args:
        bends: [c] along each axis.
        axes: [c, c] combinations of classes as columns; None where classes themselves are the axes.
    """

    bends: FloatArray
    axes: FloatArray | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """What a function is at a layer.

    Args:
        value: the function itself.
        worth: what the layer is judged by; larger is worse. Another number than the value where that is only a smooth stand-in.
        gradient: [c, d + 1].
        curvature: how sharply it bends.
    """

    value: float
    worth: float
    gradient: FloatArray
    curvature: Curvature


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
        """Replace maxima over groups by smooth ones that lie at most a part above them."""
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


def first_layer(head: Head | None, problem: Problem, coordinates: Coordinates) -> FloatArray:
    """Return the layer to begin with: the given one, or nothing but low biases for classes that no sample has."""
    if head is not None:
        return coordinates.inwards(head)
    layer = np.zeros((problem.n_classes, problem.n_features + 1), np.float32)
    low = np.log(HALF_A_SAMPLE / (1 + len(problem.features)))
    layer[held_classes(problem), -1] = -low
    layer[problem.support <= 0, -1] = low
    return layer


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


SUFFICIENT = 1e-4
MAX_TRIALS = 25
SHORTEST, LONGEST = 0.1, 0.5
ROUNDING = 2e-8
MAX_FLAT = 3
GAIN_SHARE = 0.1


@dataclass(frozen=True, kw_only=True)
class Patience:
    """When to stop.

    Args:
        max_steps: most steps.
        tolerance: it stops once no gradient component is larger, and no larger part of the value can be expected to be gained.
        n_pairs: how many former steps the second derivative is learnt from.
    """

    max_steps: int
    tolerance: float
    n_pairs: int = 10

    def is_over(self, here: Evaluation, direction: FloatArray) -> bool:
        """Return whether there is next to nothing to be gained along a direction."""
        gain = -0.5 * _product(here.gradient, direction)
        return float(
            np.abs(here.gradient).max()
        ) <= self.tolerance and gain <= GAIN_SHARE * self.tolerance * abs(here.value)


@dataclass(frozen=True, kw_only=True, eq=False)
class Descent:
    """How a descent ended.

    Args:
        layer: where.
        n_steps: accepted steps.
        has_converged: whether it stopped by itself, because the gradient is small or single precision allows no more.
    """

    layer: FloatArray
    n_steps: int
    has_converged: bool


class _Pairs:
    """Former steps and the changes of the gradient along them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: list[tuple[FloatArray, FloatArray, float]] = []

    def add(self, step: FloatArray, change: FloatArray) -> None:
        bend = _product(step, change)
        if bend > np.finfo(np.float32).tiny * 1e6:
            self._kept = [*self._kept, (step, change, bend)][-self._most :]

    def direction(self, objective: PenalisedLoss, here: Evaluation) -> FloatArray:
        """Return the downhill step that these pairs suggest."""
        embedding, factors = here.gradient.copy(), []
        for step, change, bend in reversed(self._kept):
            factors.append(_product(step, embedding) / bend)
            embedding -= np.float32(factors[-1]) * change
        embedding = objective.precondition(embedding, here.curvature)
        if self._kept:
            _, change, bend = self._kept[-1]
            embedding *= np.float32(
                bend / _product(change, objective.precondition(change, here.curvature))
            )
        for (step, change, bend), factor in zip(self._kept, reversed(factors), strict=True):
            embedding += np.float32(factor - _product(change, embedding) / bend) * step
        return np.negative(embedding, out=embedding)


def minimise(
    objective: PenalisedLoss, begin: FloatArray, patience: Patience, watcher: Best
) -> Descent:
    """Descend from a layer until the gradient is small, nothing more can be gained, or the watcher has seen enough."""
    layer, pairs, n_flat = begin, _Pairs(patience.n_pairs), 0
    here = objective.evaluate(layer)
    goes_on = watcher.goes_on(layer, here.worth)
    for n_steps in range(patience.max_steps + 1):
        direction = pairs.direction(objective, here)
        if n_flat >= MAX_FLAT or patience.is_over(here, direction):
            return Descent(layer=layer, n_steps=n_steps, has_converged=True)
        if not goes_on or n_steps == patience.max_steps:
            break
        found = _lower(objective, layer, here, direction)
        if found is None:
            return Descent(layer=layer, n_steps=n_steps, has_converged=True)
        step, there = found
        pairs.add(step, there.gradient - here.gradient)
        n_flat = n_flat + 1 if here.value - there.value <= ROUNDING * abs(here.value) else 0
        layer, here = layer + step, there
        goes_on = watcher.goes_on(layer, here.worth)
    return Descent(layer=layer, n_steps=n_steps, has_converged=False)


def _lower(
    objective: PenalisedLoss, layer: FloatArray, here: Evaluation, direction: FloatArray
) -> tuple[FloatArray, Evaluation] | None:
    """Return a step along a direction that goes down enough, None if single precision has none."""
    slope, length = _product(here.gradient, direction), 1.0
    if not slope < 0:
        return None
    for _ in range(MAX_TRIALS):
        step = direction * np.float32(length)
        there = objective.evaluate(layer + step)
        if there.value <= here.value + SUFFICIENT * length * slope:
            return step, there
        if -length * slope <= ROUNDING * abs(here.value):
            return None
        length *= _shorter(there.value - here.value, length * slope)
    return None


def _shorter(rise: float, slope: float) -> float:
    """Return by how much to shorten a step: to the lowest point of the parabola through both ends, within bounds."""
    bend = rise - slope
    return (
        min(LONGEST, max(SHORTEST, -slope / (2 * bend)))
        if np.isfinite(bend) and bend > 0
        else SHORTEST
    )


def _product(left: FloatArray, right: FloatArray) -> float:
    return float(np.vdot(left, right))
