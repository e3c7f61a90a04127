"""Putting a retrained head into a classifier's own last layer, and checking that only that was changed."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from weakspot.core.arrays import AnyArray
from weakspot.core.errors import ModelError
from weakspot.core.heads import Head
from weakspot.core.roles import Classifier, ClassifierOutput
from weakspot.models.class_scores import paired_head

USE_HEAD_FILE = "Use repaired_head.safetensors on the features instead."
_SLACK = 8.0
"""How many roundings of the sum of absolute products a score may be away from the head's own."""


def fitted_head(
    head: Head, own: Head | None, note: str | None, *, is_single: bool, where: str
) -> Head:
    """Return a head as the rows of a classifier's own last layer.

    Args:
        head: one row a class.
        own: the classifier's own, None if it is not known.
        note: why it is not known.
        is_single: whether the layer has one row for two classes, that of the second.
        where: the model, for messages.

    Raises:
        ModelError: if the classifier's layer is not known or of another shape.
    """
    if own is None:
        reason = note or "its last linear layer is not known"
        raise ModelError(
            f"The classifier cannot be written with another last layer: {reason}.",
            where=where,
            fix=USE_HEAD_FILE,
        )
    if (
        head.weights.shape != own.weights.shape
        or head.bias.shape != own.bias.shape
        or head.task is not own.task
    ):
        raise ModelError(
            f"The head does not fit the classifier, whose last layer is {own.task.value} with {own.weights.shape[0]} classes and "
            f"{own.weights.shape[1]} features.",
            where=where,
            given=f"{head.task.value} {head.weights.shape} with a bias {head.bias.shape}",
            fix="Retrain the head on the features of this classifier.",
        )
    if not (np.isfinite(head.weights).all() and np.isfinite(head.bias).all()):
        raise ModelError("The head holds NaN or infinity.", where=where, fix="Train it again.")
    return difference_head(head) if is_single else head


def difference_head(head: Head) -> Head:
    """Return the one row of a head for two classes that scores the second against the first."""
    weights, bias = head.weights.astype(np.float64), head.bias.astype(np.float64)
    return replace(
        head,
        weights=np.asarray(weights[1:] - weights[:1], np.float32),
        bias=np.asarray(bias[1:] - bias[:1], np.float32),
    )


def in_kind(values: AnyArray, kind: Any, *, where: str) -> AnyArray:
    """Return numbers in another kind of number, rounded.

    Raises:
        ModelError: if they are too large for it.
    """
    with np.errstate(over="ignore"):
        rounded = values.astype(kind)
    if not np.isfinite(rounded.astype(np.float64)).all():
        raise too_large(values, np.dtype(kind).name, where=where)
    return rounded


def too_large(values: AnyArray, kind: str, *, where: str) -> ModelError:
    """Return the error for a head whose numbers the layer's kind of number cannot hold."""
    return ModelError(
        f"The head has numbers that are too large for {kind}, in which the layer is kept.",
        where=where,
        given=float(np.abs(values).max()),
        fix="Retrain with a larger penalty, or export the classifier in float32.",
    )


def check_repaired(
    before: Classifier,
    after: Classifier,
    head: Head,
    prepared: Sequence[AnyArray],
    *,
    epsilon: float,
    is_exact: bool = True,
) -> None:
    """Compare a classifier that was read back with the one it was made from.

    Args:
        before: the user's classifier.
        after: the one that was written with the head.
        head: the head, one row a class.
        prepared: inputs.
        epsilon: relative rounding of the numbers that the layer is kept and run in.
        is_exact: whether features must be the same bit for bit.

    Raises:
        ModelError: if features changed, or probabilities are not those of the head.
    """
    problem = _unlike(after.head, head, epsilon)
    if problem is not None:
        raise not_verified(problem)
    old, new = before.classify(prepared), after.classify(prepared)
    features = _same_features(old, new, is_exact=is_exact)
    slack = float(score_slack(head, features, epsilon).max(initial=0.0))
    if not np.allclose(
        new.probabilities, head.probabilities(features), atol=2 * slack + 1e-5, rtol=0.0
    ):
        raise not_verified("its probabilities are not those of the head")


def score_slack(head: Head, features: AnyArray, epsilon: float) -> AnyArray:
    """Return how far scores [n, c] may be from the head's own logits, given how numbers are rounded."""
    sums = np.abs(features).astype(np.float64) @ np.abs(head.weights).T.astype(np.float64) + np.abs(
        head.bias
    )
    return np.asarray(_SLACK * max(epsilon, float(np.finfo(np.float32).eps)) * sums)


def not_verified(problem: str) -> ModelError:
    """Return the error for a file that was written, read back, and found to be wrong; it is not kept."""
    return ModelError(
        f"What was written was read back and is not right, so it was not kept: {problem}.",
        fix=USE_HEAD_FILE,
    )


def _same_features(old: ClassifierOutput, new: ClassifierOutput, *, is_exact: bool) -> AnyArray:
    if old.features is None or new.features is None or old.features.shape != new.features.shape:
        raise not_verified("the features under the layer are gone")
    scale = float(np.abs(old.features).max(initial=0.0))
    is_same = np.array_equal(old.features, new.features)
    if not is_same and (
        is_exact or not np.allclose(old.features, new.features, atol=1e-5 * scale, rtol=1e-5)
    ):
        raise not_verified("the features under the layer changed")
    return new.features


def _unlike(found: Head | None, head: Head, epsilon: float) -> str | None:
    if found is None or found.weights.shape != head.weights.shape:
        return "its last layer does not give its probabilities"
    is_paired = not found.weights[0].any() and not found.bias[0].any() and len(found.bias) == 2  # noqa: PLR2004 - two classes
    expected = paired_head(difference_head(head)) if is_paired else head
    pairs = ((found.weights, expected.weights), (found.bias, expected.bias))
    largest = float(
        np.abs(expected.weights).max(initial=0.0) + np.abs(expected.bias).max(initial=0.0)
    )
    is_same = all(
        np.allclose(one, other, rtol=4 * epsilon, atol=4 * epsilon * largest)
        for one, other in pairs
    )
    return None if is_same else "its last layer does not hold the numbers of the head"
