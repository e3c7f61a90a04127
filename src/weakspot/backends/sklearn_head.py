"""The last linear step of a scikit-learn model as a head."""

from typing import Any

import numpy as np

from weakspot.core.arrays import AnyArray, FloatArray
from weakspot.core.dataset import Task
from weakspot.core.heads import Head


def linear_head(model: Any, task: Task) -> Head | None:
    """Return the last step as a linear layer if it looks like one; the caller must check it against the model's answer."""
    last = last_step(model)
    if hasattr(last, "estimators_"):
        rows = [(_coefficients(each), getattr(each, "intercept_", 0.0)) for each in np.ravel(last.estimators_)]
        if any(weights is None for weights, _ in rows):
            return None
        weights = np.concatenate([weights for weights, _ in rows if weights is not None])
        bias = np.concatenate([np.broadcast_to(np.ravel(bias), (1,)) for _, bias in rows if np.size(bias) == 1] or [np.zeros(0)])
    else:
        found = _coefficients(last)
        if found is None:
            return None
        weights, bias = found, np.broadcast_to(np.ravel(getattr(last, "intercept_", 0.0)), (len(found),))
    if weights.ndim != 2 or len(bias) != len(weights):  # noqa: PLR2004 - a table
        return None
    return _as_head(weights, bias, task)


def last_step(model: Any) -> Any:
    """Return the estimator that decides: the last step of a pipeline, or the model itself."""
    return model.steps[-1][1] if hasattr(model, "steps") else model


def features_of(model: Any, vectors: FloatArray) -> AnyArray:
    """Return what the last step sees [n, d]."""
    seen: Any = vectors
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
    return Head(weights=np.asarray(weights, np.float32), bias=np.asarray(bias, np.float32), task=task)
