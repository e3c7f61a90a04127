"""What scikit-learn classifiers say, in all the shapes they say it, as one table of probabilities."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from weakspot.backends.class_scores import sigmoid, softmax
from weakspot.core.arrays import AnyArray, FloatArray
from weakspot.core.dataset import Task
from weakspot.core.errors import ModelError

_BINARY = 2


def raw_probabilities(model: Any, embeddings: FloatArray, task: Task) -> AnyArray:
    """Return probabilities [n, c] in the model's own order of classes.

    A model without predict_proba (linear support vectors) gets the soft-max or sigmoid of its decision function, which ranks like
    it but is not calibrated.
    """
    if hasattr(model, "predict_proba"):
        given = model.predict_proba(embeddings)
        if isinstance(given, list):
            return _from_list(given, model)
        return np.asarray(given)
    decisions = np.asarray(model.decision_function(embeddings))
    if task is Task.MULTI_LABEL:
        return sigmoid(decisions if decisions.ndim == _BINARY else decisions[:, None])
    if decisions.ndim == 1:
        decisions = np.stack([np.zeros_like(decisions), decisions], axis=1)
    return softmax(decisions)


def column_names(
    model: Any, task: Task, class_names: tuple[str, ...] | None = None
) -> tuple[str, ...] | None:
    """Return what the model calls its columns; None where it only numbers them.

    Args:
        model: a fitted model.
        task: single-label or multi-label.
        class_names: the classes, if known; a model that was fitted on numbers is then taken to number these.
    """
    classes = getattr(model, "classes_", None)
    if task is Task.MULTI_LABEL or classes is None or isinstance(classes, list):
        return None
    if all(isinstance(name, str) for name in classes):
        return tuple(str(name) for name in classes)
    if class_names is not None and set(np.asarray(classes).tolist()) <= set(
        range(len(class_names))
    ):
        return tuple(class_names[int(number)] for number in classes)
    return None


def in_class_order(
    table: AnyArray,
    columns: Sequence[str] | None,
    class_names: tuple[str, ...] | None,
    *,
    where: str,
) -> AnyArray:
    """Return columns in the order of the classes; a class that the model never saw gets zeros."""
    if columns is None or class_names is None or tuple(columns) == class_names:
        return table
    unknown = [name for name in columns if name not in class_names]
    if unknown:
        raise ModelError(
            "The model was fitted on classes that class_names lacks.",
            where=where,
            given=unknown[:5],
            fix="Add them to class_names.",
        )
    ordered = np.zeros((len(table), len(class_names)), dtype=table.dtype)
    for number, name in enumerate(columns):
        ordered[:, class_names.index(name)] = table[:, number]
    return ordered


def _from_list(given: list[AnyArray], model: Any) -> AnyArray:
    """Return the probability of "yes" from one table a label; a label that was always the same has one column only."""
    classes = getattr(model, "classes_", None)
    columns = []
    for number, table in enumerate(given):
        if table.shape[1] == _BINARY:
            columns.append(table[:, 1])
            continue
        only = classes[number][0] if isinstance(classes, list) else 0
        columns.append(np.full(len(table), float(bool(only))))
    return np.stack(columns, axis=1)
