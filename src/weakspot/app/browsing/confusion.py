"""What a classifier takes for what, as counts; the most confused classes on their own, all others as one."""

import numpy as np

from weakspot.app.browsing.view import View
from weakspot.core.arrays import IntArray
from weakspot.core.dataset import Dataset, Split, Task
from weakspot.core.failures import predicted_classes

MOST_SHOWN = 30
CHUNK_ROWS = 100_000
OTHERS = "all other classes"


class ConfusionView(View):
    """Samples by true class (lines) and answer (columns).

    Args:
        titles: classes in order; the last one may stand for all others.
        counts: one line a true class.
        n_samples: how many samples were counted.
        has_others: whether the last title stands for several classes.
        n_classes: how many classes there are.
        measured_on: the data.
    """

    titles: list[str]
    counts: list[list[int]]
    n_samples: int
    has_others: bool
    n_classes: int
    measured_on: str


def confusion(dataset: Dataset, splits: tuple[str, ...]) -> ConfusionView | None:
    """Count answers by true class on labelled samples of some splits; None if a sample can have several labels."""
    if dataset.task is not Task.SINGLE_LABEL:
        return None
    rows = dataset.rows_of(*[Split(name) for name in splits])
    rows = rows[dataset.is_labelled[rows]]
    said = np.concatenate([predicted_classes(dataset, part) for part in _chunks(rows)]).astype(np.int64)
    labels, said = dataset.labels[rows][said >= 0], said[said >= 0]
    shown = _most_confused(labels, said, dataset.n_classes)
    place = np.full(dataset.n_classes, len(shown), dtype=np.int64)
    place[shown] = np.arange(len(shown))
    side = len(shown) + (len(shown) < dataset.n_classes)
    counts = np.bincount(place[labels] * side + place[said], minlength=side * side).reshape(side, side)
    titles = [dataset.class_names[code] for code in shown] + [OTHERS] * (side - len(shown))
    return ConfusionView(
        titles=titles,
        counts=counts.tolist(),
        n_samples=len(labels),
        has_others=side > len(shown),
        n_classes=dataset.n_classes,
        measured_on=" and ".join(splits),
    )


def _most_confused(labels: IntArray, said: IntArray, n_classes: int) -> IntArray:
    """Return the classes that most wrong answers come from or go to, in the order of the data set."""
    wrong = labels != said
    blame = np.bincount(labels[wrong], minlength=n_classes) + np.bincount(said[wrong], minlength=n_classes)
    return np.sort(np.argsort(-blame, kind="stable")[:MOST_SHOWN])


def _chunks(rows: IntArray) -> list[IntArray]:
    return [rows[start : start + CHUNK_ROWS] for start in range(0, len(rows), CHUNK_ROWS)] or [rows]
