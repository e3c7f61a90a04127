"""Predictions and probabilities that came with the samples, as arrays in the order of the classes."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.arrays import AnyArray, BoolArray, FloatArray, IntArray
from weakspot.core.dataset import NO_LABEL, Task
from weakspot.ingest.examined_survey import ExaminedSurvey
from weakspot.ingest.outcomes import likeliest_classes


def class_codes(names: pa.Array, class_names: Sequence[str]) -> tuple[IntArray, IntArray]:
    """Return the row and the class of every name in lists of class names."""
    owners = np.asarray(pc.list_parent_indices(names)).astype(np.int64)
    codes = pc.index_in(pc.list_flatten(names), value_set=pa.array(list(class_names), pa.string()))
    return owners, np.asarray(codes).astype(np.int64)


def given_outcomes(part: pa.Table, class_names: Sequence[str], seen: ExaminedSurvey, task: Task) -> dict[str, AnyArray]:
    """Return what the samples of a part say of predictions; the same names for every part of a source."""
    outcomes: dict[str, AnyArray] = {}
    probabilities = _probabilities(part.column("probabilities").chunk(0), class_names) if seen.n_probable else None
    predictions = part.column("predictions").chunk(0)
    if probabilities is not None:
        outcomes["probabilities"] = probabilities
    if task is Task.SINGLE_LABEL and (seen.n_predicted or probabilities is not None):
        outcomes["predictions"] = _predicted_classes(predictions, probabilities, class_names)
    if task is Task.MULTI_LABEL and seen.n_predicted:
        outcomes["predicted_matrix"] = _predicted_matrix(predictions, class_names)
    return outcomes


def _probabilities(given: pa.Array, class_names: Sequence[str]) -> FloatArray:
    matrix = np.full((len(given), len(class_names)), np.nan, dtype=np.float32)
    rows = np.flatnonzero(np.asarray(pc.is_valid(given)))
    valid = given.drop_null()
    if len(valid):
        owners = np.repeat(rows, np.diff(np.asarray(valid.offsets)))
        codes = np.asarray(pc.index_in(valid.keys, value_set=pa.array(list(class_names), pa.string()))).astype(np.int64)
        matrix[owners, codes] = np.asarray(valid.items)
    return matrix


def _predicted_classes(given: pa.Array, probabilities: FloatArray | None, class_names: Sequence[str]) -> IntArray:
    classes = np.full(len(given), NO_LABEL, dtype=np.int64)
    if probabilities is not None:
        classes = likeliest_classes(probabilities)
    owners, codes = class_codes(given, class_names)
    classes[owners] = codes
    return classes


def _predicted_matrix(given: pa.Array, class_names: Sequence[str]) -> BoolArray:
    matrix = np.zeros((len(given), len(class_names)), dtype=np.bool_)
    owners, codes = class_codes(given, class_names)
    matrix[owners, codes] = True
    return matrix
