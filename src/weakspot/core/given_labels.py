"""Labels that people corrected, and those that the source gives: what proves something reads the latter, whatever people corrected."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from weakspot.core.dataset import NO_LABEL, Dataset, Task

Names = tuple[str, ...] | None
"""Names of classes; None for a sample without a label, which is not the same as one that has none of several labels."""


def corrected(dataset: Dataset, labels: Mapping[int, Names]) -> Dataset:
    """Return the same samples with labels that people corrected; what the source gives is remembered.

    Args:
        dataset: the samples.
        labels: the right classes of some rows; None for a sample that is of no use.
    """
    before = {row: names_at(dataset, row) for row in labels if row not in dataset.given_labels}
    return replace(_with_named(dataset, labels), given_labels={**before, **dataset.given_labels})


def as_given(dataset: Dataset) -> Dataset:
    """Return the same samples with the labels of their source.

    >>> from weakspot.core.dataset import dataset_from_columns
    >>> given = dataset_from_columns(class_names=["cat", "dog"], labels=[0, 1])
    >>> changed = corrected(given, {0: ("dog",), 1: None})
    >>> changed.labels.tolist(), as_given(changed).labels.tolist()
    ([1, -1], [0, 1])
    """
    return replace(_with_named(dataset, dataset.given_labels), given_labels={})


def names_at(dataset: Dataset, row: int) -> Names:
    """Return the classes of a sample by its label."""
    if not dataset.is_labelled[row]:
        return None
    if dataset.task is Task.SINGLE_LABEL:
        return (dataset.class_names[int(dataset.labels[row])],)
    return tuple(dataset.class_names[code] for code in np.flatnonzero(dataset.label_matrix[row]))


def _with_named(dataset: Dataset, labels: Mapping[int, Names]) -> Dataset:
    if not labels:
        return dataset
    rows = np.fromiter(labels, dtype=np.int64)
    codes = [
        None if names is None else [dataset.class_code(name) for name in names]
        for names in labels.values()
    ]
    if dataset.task is Task.MULTI_LABEL:
        return dataset.with_labels(rows, codes)
    return dataset.with_labels(rows, [one[0] if one else NO_LABEL for one in codes])
