"""L-BFGS with a preconditioner, few pairs in single precision, and steps that never go up."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from weakspot.core.arrays import FloatArray

SUFFICIENT = 1e-4
MAX_TRIALS = 25
SHORTEST, LONGEST = 0.1, 0.5
ROUNDING = 2e-8
MAX_FLAT = 3
GAIN_SHARE = 0.1


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


class Objective(Protocol):
    """A convex function of a layer [c, d + 1]."""

    def evaluate(self, layer: FloatArray) -> Evaluation:
        """Return value, gradient and curvature."""

    def precondition(self, embedding: FloatArray, curvature: Curvature) -> FloatArray:
        """Return an approximate product of an embedding with the inverse of the second derivative."""


class Watcher(Protocol):
    """Sees every accepted layer."""

    def goes_on(self, layer: FloatArray, worth: float) -> bool:
        """Take note of a layer; False stops."""


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
            self._kept = (
                [*self._kept[-self._most + 1 :], (step, change, bend)]
                if self._most > 1
                else [(step, change, bend)]
            )

    def direction(self, objective: Objective, here: Evaluation) -> FloatArray:
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
    objective: Objective, begin: FloatArray, patience: Patience, watcher: Watcher
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
    objective: Objective, layer: FloatArray, here: Evaluation, direction: FloatArray
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
