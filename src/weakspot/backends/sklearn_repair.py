"""A scikit-learn model with another last linear step."""

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weakspot.backends.head_fitting import difference_head
from weakspot.backends.optional_library import require_library
from weakspot.backends.sklearn_head import last_step
from weakspot.core.arrays import AnyArray
from weakspot.core.errors import ModelError
from weakspot.core.heads import Head

PURPOSE = "scikit-learn classifiers in files"


def with_head(model: Any, head: Head, columns: Sequence[str] | None, class_names: tuple[str, ...] | None) -> Any:
    """Return a copy of a model whose last step has the numbers of a head; the model itself stays as it is.

    Args:
        model: a fitted model or pipeline.
        head: one row a class, in the order of `class_names`.
        columns: the classes in the model's own order, None if it has no other.
        class_names: the classes in the order of the head.
    """
    other = copy.deepcopy(model)
    step = last_step(other)
    order = range(len(head.bias)) if columns is None or class_names is None else [class_names.index(name) for name in columns]
    rows = Head(weights=head.weights[list(order)], bias=head.bias[list(order)], task=head.task)
    if hasattr(step, "estimators_"):
        for number, each in enumerate(np.ravel(step.estimators_)):
            _set(each, rows.weights[number : number + 1], rows.bias[number : number + 1])
        return other
    has_one_row = len(np.atleast_2d(step.coef_.toarray() if hasattr(step.coef_, "toarray") else step.coef_)) == 1
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
        raise ModelError(f"skops cannot write the model: {type(error).__name__}: {error}", given=type(model).__name__) from error
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
