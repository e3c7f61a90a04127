"""One temperature that makes probabilities better to take at their word."""

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, FloatArray
from weakspot.core.dataset import Task
from weakspot.core.errors import DataError
from weakspot.core.heads import Head

LEAST_SAMPLES = 20
COLDEST, HOTTEST = 0.05, 20.0
NEAR_AN_END = 1.02
LEAST_GAIN = 1e-9
CHUNK_ROWS = 4_096


def calibrated(
    head: Head, features: FloatArray, targets: AnyArray, *, weights: DoubleArray | None = None
) -> tuple[Head, float]:
    """Return the head whose logits are divided by the temperature with the lowest loss on given samples, and that temperature.

    The samples must not be those the head was trained on. What a head predicts stays the same. Where samples cannot tell, the
    head comes back as it is, with temperature 1: fewer than 20 of them, all of one class, one without its label, logits that do
    not differ or are no numbers, or a loss that is lowest at no temperature between 0.05 and 20 (every sample right by far, or
    answers worse than chance).

    Args:
        head: the layer.
        features: [n, d].
        targets: which labels each sample has [n, c], or codes [n] for single-label tasks.
        weights: [n] what each sample counts; None for all alike.
    """
    truth = _label_matrix(targets, len(head.bias))
    counts = np.ones(len(truth)) if weights is None else np.asarray(weights, dtype=np.float64)
    _check(features, truth, counts, head)
    is_used = counts > 0
    truth, counts = truth[is_used], counts[is_used]
    logits = head.logits(features[is_used])
    if _is_degenerate(logits, truth, head.task):
        return head, 1.0
    temperature = _coolest(logits, truth, counts / counts.sum(), head.task)
    return (head, 1.0) if temperature is None else (head.cooled(temperature), temperature)


def _check(features: AnyArray, truth: BoolArray, counts: DoubleArray, head: Head) -> None:
    if not len(features) == len(truth) == len(counts):
        raise DataError(
            "Features, targets and weights must have the same length.",
            given=(len(features), len(truth), len(counts)),
        )
    if len(features) and np.shape(features)[1] != head.weights.shape[1]:
        raise DataError(
            "Features have another width than the head.",
            given=np.shape(features)[1],
            fix=f"{head.weights.shape[1]}.",
        )
    if not np.isfinite(counts).all() or np.any(counts < 0):
        raise DataError("Weights must be numbers that are not negative.")


def _label_matrix(targets: AnyArray, n_classes: int) -> BoolArray:
    given = np.asarray(targets)
    if given.ndim == 1:
        return np.asarray(given[:, None] == np.arange(n_classes))
    if given.shape[1] != n_classes:
        raise DataError(
            "Targets have another number of classes than the head.",
            given=given.shape[1],
            fix=f"{n_classes} columns.",
        )
    return np.asarray(given, dtype=np.bool_)


def _is_degenerate(logits: FloatArray, truth: BoolArray, task: Task) -> bool:
    if len(truth) < LEAST_SAMPLES or not np.isfinite(logits).all():
        return True
    if task is Task.MULTI_LABEL:
        return bool(truth.all() or not truth.any() or not np.any(logits))
    is_labelled = truth.sum(axis=1) == 1
    return bool(
        not is_labelled.all()
        or np.count_nonzero(truth.any(axis=0)) <= 1
        or np.ptp(logits, axis=1).max() == 0
    )


def _coolest(logits: FloatArray, truth: BoolArray, shares: DoubleArray, task: Task) -> float | None:
    """Return the temperature with the lowest loss, None if that is no better than one, or lies at an end of what is looked at."""
    from scipy.optimize import minimize_scalar

    def loss(logarithm: float) -> float:
        return _loss(logits, truth, shares, factor=float(np.exp(-logarithm)), task=task)

    found = minimize_scalar(
        loss, bounds=(np.log(COLDEST), np.log(HOTTEST)), method="bounded", options={"xatol": 1e-5}
    )
    temperature = float(np.exp(found.x))
    is_inside = COLDEST * NEAR_AN_END < temperature < HOTTEST / NEAR_AN_END
    return temperature if is_inside and found.fun < loss(0.0) - LEAST_GAIN else None


def _loss(
    logits: FloatArray, truth: BoolArray, shares: DoubleArray, *, factor: float, task: Task
) -> float:
    """Return the weighted mean loss of logits [n, c] times a factor."""
    total = 0.0
    for first in range(0, len(logits), CHUNK_ROWS):
        part = slice(first, first + CHUNK_ROWS)
        values, has = logits[part].astype(np.float64) * factor, truth[part]
        if task is Task.MULTI_LABEL:
            losses = np.logaddexp(0.0, np.where(has, -values, values)).sum(axis=1)
        else:
            values -= values.max(axis=1, keepdims=True)
            losses = np.log(np.exp(values).sum(axis=1)) - values[has]
        total += float(shares[part] @ losses)
    return total
