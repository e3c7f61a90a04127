"""What a classifier said of labelled images, as far as the checks need it."""

from dataclasses import dataclass, replace

import numpy as np

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.dataset import Dataset, Split, Task


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledAnswers:
    """Labels and predictions of one task with one label a sample.

    Args:
        class_names: what the codes mean.
        labels: true class of every sample [n].
        predictions: predicted class of every sample [n].
        is_training: which samples are in the split train [n].
    """

    class_names: tuple[str, ...]
    labels: IntArray
    predictions: IntArray
    is_training: BoolArray

    def __len__(self) -> int:
        return len(self.labels)

    def only(self, chosen: BoolArray) -> "LabelledAnswers":
        return replace(
            self,
            labels=self.labels[chosen],
            predictions=self.predictions[chosen],
            is_training=self.is_training[chosen],
        )

    @property
    def is_right(self) -> BoolArray:
        return np.asarray(self.labels == self.predictions)


def answers_of(dataset: Dataset, splits: tuple[str, ...]) -> LabelledAnswers | None:
    """Return what is known of the training samples and of those that are evaluated; None where the checks do not apply."""
    if dataset.task is not Task.SINGLE_LABEL or dataset.predictions is None:
        return None
    rows = dataset.rows_of(Split.TRAIN, *[Split(name) for name in splits])
    predictions = np.asarray(dataset.predictions)[rows]
    known = (dataset.labels[rows] >= 0) & (predictions >= 0)
    rows, predictions = rows[known], predictions[known]
    return LabelledAnswers(
        class_names=dataset.class_names,
        labels=dataset.labels[rows],
        predictions=predictions,
        is_training=np.isin(rows, dataset.rows_of(Split.TRAIN)),
    )
