"""Trains the last layer of a planted world's classifier on its training rows."""

import numpy as np

from weakspot.core.arrays import BoolArray, ByteArray, FloatArray, IntArray
from weakspot.core.dataset import Dataset, Split, Task
from weakspot.core.errors import NotEnoughDataError
from weakspot.core.heads import Head
from weakspot.testing.planted_features import OwnFeatures


def fit_head(own: OwnFeatures, codes: ByteArray, instances: IntArray, *, labels: BoolArray, dataset: Dataset, largest: int) -> Head:
    """Return a logistic regression on the first `largest` training rows, as a last layer."""
    rows = dataset.rows_of(Split.TRAIN)[:largest]
    features, truth = own.of(codes[rows], instances[rows]), labels[rows]
    _refuse_if_missing(truth, dataset)
    if dataset.task is Task.SINGLE_LABEL:
        weights, bias = _fit_softmax(features, truth.argmax(axis=1))
    elif own.problem.kind == "none":
        weights, bias = _fit_along_axes(own, features, truth, dataset.class_names)
    else:
        fitted = [_fit_logistic(features, truth[:, code]) for code in range(truth.shape[1])]
        weights, bias = np.stack([weight for weight, _ in fitted]), np.array([offset for _, offset in fitted])
    return Head(weights=weights.astype(np.float32), bias=bias.astype(np.float32), task=dataset.task)


def _refuse_if_missing(truth: BoolArray, dataset: Dataset) -> None:
    one_sided = [name for name, column in zip(dataset.class_names, truth.T, strict=True) if not column.any() or column.all()]
    if one_sided:
        raise NotEnoughDataError("Too few training samples to train on.", given=one_sided, fix="Plant a larger world.")


def _fit_softmax(features: FloatArray, labels: IntArray) -> tuple[FloatArray, FloatArray]:
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression(C=1.0, max_iter=500).fit(features.astype(np.float64), labels)
    weights, bias = fitted.coef_, fitted.intercept_
    if len(weights) == 1:
        weights, bias = np.concatenate([-weights, weights]) / 2, np.concatenate([-bias, bias]) / 2
    return weights, bias


def _fit_logistic(features: FloatArray, truth: BoolArray) -> tuple[FloatArray, float]:
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression(C=1.0, max_iter=500).fit(features.astype(np.float64), truth)
    return fitted.coef_[0], float(fitted.intercept_[0])


def _fit_along_axes(
    own: OwnFeatures, features: FloatArray, truth: BoolArray, names: tuple[str, ...]
) -> tuple[FloatArray, FloatArray]:
    """Fit each label along its own axis only, so that in the null no other kind in the scene can sway it."""
    weights, bias = [], []
    for code, name in enumerate(names):
        axis = own.kind_axis(name)
        slope, offset = _fit_logistic((features @ axis)[:, None], truth[:, code])
        weights.append(slope[0] * axis)
        bias.append(offset)
    return np.stack(weights), np.array(bias)
