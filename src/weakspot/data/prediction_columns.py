"""What a classifier said, attached to a data set: columns in the order of its classes, thresholds for multi-label tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from weakspot.core.arrays import BoolArray, FloatArray, IntArray
from weakspot.core.dataset import NO_LABEL, Dataset, Split, Task
from weakspot.core.errors import ConfigError, DataError, ModelError
from weakspot.core.failures import best_f1_thresholds

_BLOCK_ROWS = 65_536


def with_extra_classes(dataset: Dataset, classifier_names: Sequence[str] | None) -> Dataset:
    """Return the data set with the classes that only the classifier knows after its own: they may be predicted, and are wrong.

    A classifier that lacks a class of the data set is left for `class_columns` to refuse. Earlier predictions are forgotten.
    """
    names, own = tuple(classifier_names or ()), set(dataset.class_names)
    if not own < set(names):
        return dataset
    extra = [name for name in names if name not in own]
    return replace(dataset.with_predictions(), class_names=(*dataset.class_names, *extra))


def class_columns(
    dataset: Dataset, classifier_names: Sequence[str] | None, *, n_columns: int, classifier_id: str
) -> IntArray:
    """Return for every class of the data set its column in the classifier's probabilities [c].

    Args:
        dataset: has the classes in the order wanted.
        classifier_names: the classifier's classes in the order of its columns; None: taken to be those of the data set.
        n_columns: how many probabilities the classifier gives.
        classifier_id: for messages.

    Raises:
        ModelError: if the two do not name the same classes, with both lists.
    """
    names = tuple(classifier_names) if classifier_names is not None else dataset.class_names
    if len(names) != n_columns:
        raise ModelError(
            f"The classifier gives {n_columns} probabilities for {len(names)} classes.",
            where=classifier_id,
            given=list(names),
            fix="List the classifier's classes, in the order of its outputs, in class_names of the classifier's options.",
        )
    if set(names) != set(dataset.class_names) or len(set(names)) != len(names):
        raise _other_classes(dataset.class_names, names, classifier_id)
    position = {name: column for column, name in enumerate(names)}
    return np.array([position[name] for name in dataset.class_names], dtype=np.int64)


def _other_classes(wanted: Sequence[str], names: Sequence[str], classifier_id: str) -> ModelError:
    only_data = [name for name in wanted if name not in set(names)]
    only_classifier = [name for name in names if name not in set(wanted)]
    return ModelError(
        f"Classifier and data set do not have the same classes. Only in the data set: {only_data}. "
        f"Only in the classifier: {only_classifier}. Data set: {list(wanted)}. Classifier: {list(names)}.",
        where=classifier_id,
        fix="Set class_names of the data to the classifier's classes, or rename the labels.",
    )


def with_probabilities(
    dataset: Dataset, probabilities: FloatArray, *, thresholds: Mapping[str, float] | None = None
) -> Dataset:
    """Return the data set with probabilities [n, c] as its only predictions; rows of NaN count as not predicted.

    Args:
        dataset: its classes are the columns of the probabilities.
        probabilities: may be memory-mapped.
        thresholds: multi-label decision thresholds by class; those not given have the best F1 on labelled validation samples.
    """
    if probabilities.shape != (len(dataset), dataset.n_classes):
        raise DataError(
            "There must be one probability for every sample and class.",
            given=probabilities.shape,
            fix=f"The shape must be {(len(dataset), dataset.n_classes)}.",
        )
    if dataset.task is Task.SINGLE_LABEL:
        return dataset.with_predictions(
            predictions=likeliest_classes(probabilities), probabilities=probabilities
        )
    chosen = label_thresholds(dataset, probabilities, thresholds or {})
    return dataset.with_predictions(probabilities=probabilities, thresholds=chosen)


def with_thresholds(dataset: Dataset, given: Mapping[str, float]) -> Dataset:
    """Return the data set with decision thresholds for the probabilities that came with it; nothing changes without them."""
    if dataset.task is Task.SINGLE_LABEL or dataset.probabilities is None:
        return dataset
    return replace(dataset, thresholds=label_thresholds(dataset, dataset.probabilities, given))


def likeliest_classes(probabilities: FloatArray) -> IntArray:
    """Return the likeliest class of every row [n], -1 for rows of NaN.

    >>> likeliest_classes(np.array([[0.2, 0.8], [np.nan, np.nan]], dtype=np.float32)).tolist()
    [1, -1]
    """
    classes = np.empty(len(probabilities), dtype=np.int64)
    for start in range(0, len(probabilities), _BLOCK_ROWS):
        block = np.asarray(probabilities[start : start + _BLOCK_ROWS])
        classes[start : start + len(block)] = np.where(
            np.isnan(block[:, 0]), NO_LABEL, np.argmax(block, axis=1)
        )
    return classes


def label_thresholds(
    dataset: Dataset, probabilities: FloatArray, given: Mapping[str, float]
) -> FloatArray:
    """Return the decision threshold of every label [c]: as given, else the best F1 on labelled validation samples.

    Raises:
        ConfigError: if a threshold names no class or lies outside [0, 1].
    """
    wrong = {
        name: value
        for name, value in given.items()
        if name not in dataset.class_names or not 0 <= value <= 1
    }
    if wrong:
        raise ConfigError(
            "Label thresholds must name classes and lie in [0, 1].",
            given=wrong,
            fix=f"The classes are {list(dataset.class_names)}.",
        )
    rows = dataset.rows_of(Split.VALIDATION)
    rows = rows[dataset.is_labelled[rows] & _is_predicted(probabilities, rows)]
    found = np.full(dataset.n_classes, 0.5, dtype=np.float32)
    if len(rows):
        found = best_f1_thresholds(np.asarray(probabilities[rows]), dataset.label_matrix[rows])
    for name, value in given.items():
        found[dataset.class_code(name)] = value
    return found


def _is_predicted(probabilities: FloatArray, rows: IntArray) -> BoolArray:
    return np.asarray(~np.isnan(probabilities[rows, 0]), dtype=np.bool_)
