"""Losses of samples, and the slope of their weighted sum, one cache-sized chunk at a time."""

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import AnyArray, DoubleArray, FloatArray
from weakspot.core.dataset import Task
from weakspot.repair.head_training.problem import FEW_CLASSES, Problem

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
