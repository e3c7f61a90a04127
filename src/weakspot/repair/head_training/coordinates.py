"""Coordinates in which training is easy: features standardised and turned to their principal directions, without touching them."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import DoubleArray, FloatArray
from weakspot.core.dataset import Task
from weakspot.core.errors import DataError
from weakspot.core.heads import Head
from weakspot.repair.head_training.problem import Problem
from weakspot.repair.head_training.threads import one_thread_each

LEAST_DEVIATION = 1e-6
LARGE_CENTRE = 30.0
MOST_TURNED, SMALL_WIDTH = 4_096, 512
ROWS_A_FEATURE = 16
FIRST_SAMPLES = 64


@dataclass(frozen=True, kw_only=True, eq=False)
class Coordinates:
    """Centre and deviation of features, and their principal directions, applied to layers [c, d + 1] instead of to the features.

    Args:
        centre: [d] mean of the samples.
        deviation: [d] standard deviation, one where a feature is constant.
        directions: [d, d] principal directions of standardised features as columns; None where finding them does not pay.
        spectrum: [d] mean square of standardised features along each direction.
    """

    centre: DoubleArray
    deviation: DoubleArray
    directions: FloatArray | None
    spectrum: FloatArray

    @classmethod
    def of(cls, problem: Problem) -> "Coordinates":
        """Measure the features of a problem."""
        centre, deviation = _moments(problem)
        directions, spectrum = _principal(problem, centre, deviation)
        return cls(centre=centre, deviation=deviation, directions=directions, spectrum=spectrum)

    @classmethod
    def plain_features(cls, width: int) -> "Coordinates":
        return cls(
            centre=np.zeros(width),
            deviation=np.ones(width),
            directions=None,
            spectrum=np.ones(width, np.float32),
        )

    @property
    def subtracted(self) -> FloatArray | None:
        """Return the centre if it is so far from zero that single precision needs it subtracted from features, else None."""
        is_far = np.abs(self.centre) > LARGE_CENTRE * self.deviation
        return self.centre.astype(np.float32) if is_far.any() else None

    def inwards(self, head: Head) -> FloatArray:
        """Return the layer [c, d + 1] in these coordinates that answers like a head on plain features."""
        weights = np.asarray(head.weights, dtype=np.float64)
        inner = (weights * self.deviation).astype(np.float32)
        turned = inner if self.directions is None else inner @ self.directions
        return np.column_stack([turned, (head.bias + weights @ self.centre).astype(np.float32)])

    def plain(self, layer: FloatArray, *, is_centred: bool) -> tuple[FloatArray, FloatArray]:
        """Return weights [c, d] and bias [c] for features as they are, or with the centre subtracted."""
        turned = layer[:, :-1]
        weights: FloatArray = turned if self.directions is None else turned @ self.directions.T
        weights = np.divide(weights, self.deviation.astype(np.float32), dtype=np.float32)
        bias = layer[:, -1] if is_centred else layer[:, -1] - weights @ self.centre
        return weights, bias.astype(np.float32)

    def outwards(self, layer: FloatArray, task: Task) -> Head:
        weights, bias = self.plain(layer, is_centred=False)
        return Head(weights=weights, bias=bias, task=task)

    def slope(self, weights: FloatArray, bias: FloatArray, *, is_centred: bool) -> FloatArray:
        """Return the slope [c, d + 1] in these coordinates for those along plain weights [c, d], which it uses up, and bias."""
        if not is_centred:
            weights -= np.outer(bias, self.centre.astype(np.float32))
        weights /= self.deviation.astype(np.float32)
        found = np.empty((len(bias), weights.shape[1] + 1), np.float32)
        found[:, :-1] = weights if self.directions is None else weights @ self.directions
        found[:, -1] = bias
        return found


def _moments(problem: Problem) -> tuple[DoubleArray, DoubleArray]:
    """Return mean and standard deviation of features, by sums around the mean of the first samples."""
    shift = np.asarray(problem.features[:FIRST_SAMPLES], dtype=np.float32).mean(axis=0)
    sums, squares = np.zeros(problem.n_features), np.zeros(problem.n_features)
    with np.errstate(all="ignore"):
        for _, values in problem.chunks():
            around = values - shift
            sums += np.ones(len(around), np.float32) @ around
            squares += np.einsum("ij,ij->j", around, around)
    if not (np.isfinite(sums).all() and np.isfinite(squares).all()):
        raise DataError(
            "Some features are missing or not finite.", fix="Leave out samples without features."
        )
    mean = sums / len(problem.features)
    centre = mean + shift
    deviation = np.sqrt(np.maximum(squares / len(problem.features) - mean**2, 0.0))
    least = LEAST_DEVIATION * np.maximum(np.abs(centre), deviation.max())
    return centre, np.where(deviation > least, deviation, 1.0)


def _principal(
    problem: Problem, centre: DoubleArray, deviation: DoubleArray
) -> tuple[FloatArray | None, FloatArray]:
    """Return principal directions and the spectrum of standardised features, from samples drawn evenly by what they count."""
    width, n_samples = problem.n_features, len(problem.features)
    if width > (min(SMALL_WIDTH, n_samples) if n_samples < 4 * width else MOST_TURNED):
        return None, np.ones(width, np.float32)
    n_generated = min(n_samples, max(ROWS_A_FEATURE * width, MOST_TURNED))
    drawn = np.searchsorted(
        np.cumsum(problem.shares), (np.arange(n_generated) + 0.5) / n_generated
    ).clip(0, n_samples - 1)
    products = np.zeros((width, width), np.float32)
    for first in range(0, n_generated, MOST_TURNED // 2):
        values = np.asarray(
            problem.features[drawn[first : first + MOST_TURNED // 2]], dtype=np.float32
        )
        values -= centre.astype(np.float32)
        values /= deviation.astype(np.float32)
        products += values.T @ values
    with one_thread_each():
        spectrum, directions = np.linalg.eigh(products / np.float32(n_generated))
    return np.ascontiguousarray(directions), np.maximum(spectrum, 0).astype(np.float32)
