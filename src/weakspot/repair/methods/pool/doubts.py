"""How unsure the classifier is of samples, from its probabilities alone: never from their labels."""

from collections.abc import Callable

import numpy as np

from weakspot.core.arrays import DoubleArray, FloatArray, IntArray
from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import NotEnoughDataError

CHUNK_ROWS = 8_192
SMALLEST = 1e-300

Doubt = Callable[[DoubleArray, FloatArray | None], DoubleArray]
"""Probabilities [n, c] and, for multi-label tasks, thresholds [c] to one number a row; larger is less sure."""


def least_sure(dataset: Dataset, rows: IntArray, doubt: Doubt, strategy: str) -> IntArray:
    """Return rows with known probabilities, least sure first; ties keep the order given.

    Raises:
        NotEnoughDataError: if there are no probabilities.
    """
    if dataset.probabilities is None:
        raise NotEnoughDataError(
            f"The strategy {strategy} needs the classifier's probabilities.",
            where="[repair]",
            fix="Give a classifier, or probability columns in the manifest.",
        )
    thresholds = None
    if dataset.task is Task.MULTI_LABEL:
        thresholds = (
            dataset.thresholds
            if dataset.thresholds is not None
            else np.full(dataset.n_classes, 0.5, dtype=np.float32)
        )
    doubts = np.empty(len(rows))
    for start in range(0, len(rows), CHUNK_ROWS):
        part = slice(start, start + CHUNK_ROWS)
        doubts[part] = doubt(
            np.asarray(dataset.probabilities[rows[part]], dtype=np.float64), thresholds
        )
    order = np.argsort(-doubts, kind="stable")
    return rows[order[np.isfinite(doubts[order])]]


def low_confidence(probabilities: DoubleArray, thresholds: FloatArray | None) -> DoubleArray:
    """Return minus the probability of the likeliest answer: one class, or the likeliest set of labels (its logarithm)."""
    if thresholds is None:
        return np.asarray(-probabilities.max(axis=1))
    return np.asarray(
        -np.log(np.maximum(np.maximum(probabilities, 1.0 - probabilities), SMALLEST)).sum(axis=1)
    )


def small_margin(probabilities: DoubleArray, thresholds: FloatArray | None) -> DoubleArray:
    """Return minus the lead of the likeliest class over the second, or the least distance of a label from its threshold."""
    if thresholds is not None:
        return np.asarray(-np.abs(probabilities - thresholds).min(axis=1))
    if probabilities.shape[1] == 1:
        return np.asarray(-probabilities[:, 0])
    leaders = np.partition(probabilities, -2, axis=1)[:, -2:]
    return np.asarray(leaders[:, 0] - leaders[:, 1])


def high_entropy(probabilities: DoubleArray, thresholds: FloatArray | None) -> DoubleArray:
    """Return the entropy of the answer: over classes, or summed over labels."""
    found = _surprise(probabilities).sum(axis=1)
    return np.asarray(
        found if thresholds is None else found + _surprise(1.0 - probabilities).sum(axis=1)
    )


def _surprise(probabilities: DoubleArray) -> DoubleArray:
    return np.asarray(-probabilities * np.log(np.maximum(probabilities, SMALLEST)))
