"""The last linear step of a scikit-learn model as a head.

A scikit-learn model with another last linear step.
"""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weakspot.backends.head_fitting import difference_head
from weakspot.backends.optional_library import require_library
from weakspot.core.arrays import AnyArray, FloatArray
from weakspot.core.dataset import Task
from weakspot.core.errors import ModelError
from weakspot.core.heads import Head

PURPOSE = "scikit-learn classifiers in files"


def with_head(
    model: Any, head: Head, columns: Sequence[str] | None, class_names: tuple[str, ...] | None
) -> Any:
    """Return a copy of a model whose last step has the numbers of a head; the model itself stays as it is.

    Args:
        model: a fitted model or pipeline.
        head: one row a class, in the order of `class_names`.
        columns: the classes in the model's own order, None if it has no other.
        class_names: the classes in the order of the head.
    """
    other = copy.deepcopy(model)
    step = last_step(other)
    order = (
        range(len(head.bias))
        if columns is None or class_names is None
        else [class_names.index(name) for name in columns]
    )
    rows = Head(weights=head.weights[list(order)], bias=head.bias[list(order)], task=head.task)
    if hasattr(step, "estimators_"):
        for number, each in enumerate(np.ravel(step.estimators_)):
            _set(each, rows.weights[number : number + 1], rows.bias[number : number + 1])
        return other
    has_one_row = (
        len(np.atleast_2d(step.coef_.toarray() if hasattr(step.coef_, "toarray") else step.coef_))
        == 1
    )
    if has_one_row and len(rows.bias) > 1:
        rows = difference_head(rows)
    _set(step, rows.weights, rows.bias)
    return other


def save_skops(path: Path, model: Any) -> Path:
    """Write a model as a .skops file and return the path.

    Raises:
        ModelError: if skops cannot hold the model.
    """
    skops = require_library("skops.io", extra="sklearn", purpose=PURPOSE)
    try:
        skops.dump(model, str(path))
    except Exception as error:
        raise ModelError(
            f"skops cannot write the model: {type(error).__name__}: {error}",
            given=type(model).__name__,
        ) from error
    return path


def types_to_trust(path: Path) -> list[str]:
    """Return the types in a .skops file that its reader must name as trusted."""
    skops = require_library("skops.io", extra="sklearn", purpose=PURPOSE)
    return list(skops.get_untrusted_types(file=str(path)))


def _set(step: Any, weights: AnyArray, bias: AnyArray) -> None:
    old = step.coef_.toarray() if hasattr(step.coef_, "toarray") else np.asarray(step.coef_)
    numbers = weights.astype(old.dtype)
    step.coef_ = numbers.reshape(old.shape) if old.size == numbers.size else numbers
    step.intercept_ = bias.astype(old.dtype)


def linear_head(model: Any, task: Task) -> Head | None:
    """Return the last step as a linear layer if it looks like one; the caller must check it against the model's answer."""
    last = last_step(model)
    if hasattr(last, "estimators_"):
        rows = [
            (_coefficients(each), getattr(each, "intercept_", 0.0))
            for each in np.ravel(last.estimators_)
        ]
        if any(weights is None for weights, _ in rows):
            return None
        weights = np.concatenate([weights for weights, _ in rows if weights is not None])
        bias = np.concatenate(
            [np.broadcast_to(np.ravel(bias), (1,)) for _, bias in rows if np.size(bias) == 1]
            or [np.zeros(0)]
        )
    else:
        found = _coefficients(last)
        if found is None:
            return None
        weights, bias = (
            found,
            np.broadcast_to(np.ravel(getattr(last, "intercept_", 0.0)), (len(found),)),
        )
    if weights.ndim != 2 or len(bias) != len(weights):  # noqa: PLR2004 - a table
        return None
    return _as_head(weights, bias, task)


def last_step(model: Any) -> Any:
    return model.steps[-1][1] if hasattr(model, "steps") else model


def features_of(model: Any, embeddings: FloatArray) -> AnyArray:
    """Return what the last step sees [n, d]."""
    seen: Any = embeddings
    for _, step in model.steps[:-1] if hasattr(model, "steps") else ():
        if step is not None and step != "passthrough":
            seen = step.transform(seen)
    return np.asarray(seen.toarray() if hasattr(seen, "toarray") else seen, dtype=np.float32)


def _coefficients(step: Any) -> AnyArray | None:
    found = getattr(step, "coef_", None)
    if found is None or hasattr(step, "dual_coef_"):
        return None
    return np.atleast_2d(np.asarray(found.toarray() if hasattr(found, "toarray") else found))


def _as_head(weights: AnyArray, bias: AnyArray, task: Task) -> Head:
    if task is Task.SINGLE_LABEL and len(weights) == 1:
        weights = np.concatenate([np.zeros_like(weights), weights])
        bias = np.concatenate([np.zeros(1), bias])
    return Head(
        weights=np.asarray(weights, np.float32), bias=np.asarray(bias, np.float32), task=task
    )
