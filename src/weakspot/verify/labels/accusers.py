"""Who accuses a label: the classifier where it is surer of another class than is usual, and the nearest training samples."""

import numpy as np

from weakspot.core.arrays import AnyArray, DoubleArray, FloatArray, IntArray, unit_rows
from weakspot.core.dataset import Dataset, Task
from weakspot.core.failures import ClassProblem, Side, probabilities_of
from weakspot.core.samples import SampleSet

CHUNK_ROWS = 16_384
BLOCK_FAILURES = 256


def class_thresholds(labels: IntArray, probabilities: AnyArray) -> DoubleArray:
    """Return how likely every class [c] usually is for samples that carry its label; 1 for a class that nobody carries.

    >>> class_thresholds(np.array([0, 0, 1]), np.array([[0.9, 0.1], [0.7, 0.3], [0.2, 0.8]])).round(2).tolist()
    [0.8, 0.8]
    """
    n_classes = probabilities.shape[1]
    counts = np.bincount(labels, minlength=n_classes)
    own = np.asarray(probabilities[np.arange(len(labels)), labels], dtype=np.float64)
    sums = np.bincount(labels, weights=own, minlength=n_classes)
    return np.where(counts > 0, sums / np.maximum(counts, 1), 1.0)


def confident_class(probabilities: AnyArray, thresholds: DoubleArray) -> IntArray:
    """Return for every row the likeliest of the classes that reach their threshold, -1 if none does.

    >>> confident_class(np.array([[0.5, 0.4, 0.1], [0.3, 0.6, 0.1]]), np.array([0.8, 0.5, 0.5])).tolist()
    [-1, 1]
    """
    reached = np.where(probabilities >= thresholds, probabilities, -1.0)
    return np.where(reached.max(axis=1) >= 0, reached.argmax(axis=1), -1).astype(np.int64)


def confidently_other(
    dataset: Dataset, reference: IntArray, problem: ClassProblem, failing: IntArray
) -> IntArray:
    """Return for every failure the class that it confidently is instead of its label, -1 if it is none.

    In a multi-label task there is one alternative, the other side, and 0 stands for it.

    Args:
        dataset: all samples.
        reference: rows that thresholds are taken from; the classifier must not have been trained on them.
        problem: the class.
        failing: rows of the class.
    """
    labelled = reference[dataset.is_labelled[reference]]
    probabilities = probabilities_of(dataset, labelled, purpose="suspect labels")
    has_prediction = np.isfinite(probabilities).all(axis=1)
    known, probabilities = labelled[has_prediction], probabilities[has_prediction]
    given = probabilities_of(dataset, failing, purpose="suspect labels")
    code = dataset.class_code(problem.class_name)
    if dataset.task is Task.SINGLE_LABEL:
        found = confident_class(given, class_thresholds(dataset.labels[known], probabilities))
        return np.where(found == code, -1, found)
    has_label = dataset.label_matrix[known, code]
    present = float(probabilities[has_label, code].mean()) if has_label.any() else 1.0
    absent = float(probabilities[~has_label, code].mean()) if not has_label.all() else 0.0
    is_other = (
        given[:, code] >= present if problem.side is Side.ABSENT else given[:, code] <= absent
    )
    return np.where(is_other, 0, -1)


def nearest_rows(
    embeddings: FloatArray, training: SampleSet, rows: IntArray, *, space: str, n_nearest: int
) -> tuple[FloatArray, IntArray]:
    """Return similarity and row of the nearest training samples, chunk by chunk; minus infinity where there are fewer."""
    best = np.full((len(embeddings), n_nearest), -np.inf, dtype=np.float32)
    found = np.full((len(embeddings), n_nearest), -1, dtype=np.int64)
    for start in range(0, len(rows), CHUNK_ROWS):
        chunk = rows[start : start + CHUNK_ROWS]
        near = unit_rows(training.embeddings(space, chunk))
        for first in range(0, len(embeddings), BLOCK_FAILURES):
            block = slice(first, first + BLOCK_FAILURES)
            _take_nearer(best[block], found[block], embeddings[block] @ near.T, chunk)
    return best, found


def _take_nearer(
    best: FloatArray, found: IntArray, similarities: FloatArray, rows: IntArray
) -> None:
    """Put rows [m] that are nearer than the farthest found so far in its place; both arrays [n, k] are changed."""
    for place in np.flatnonzero((similarities > best.min(axis=1, keepdims=True)).any(axis=1)):
        nearer = np.flatnonzero(similarities[place] > best[place].min())
        values = np.concatenate([best[place], similarities[place, nearer]])
        order = _largest(values, best.shape[1])
        found[place] = np.concatenate([found[place], rows[nearer]])[order]
        best[place] = values[order]


def _largest(values: FloatArray, n_wanted: int) -> IntArray:
    """Return places of the largest values in order, the first of equal ones first; only those that may be among them are sorted."""
    least = np.partition(values, len(values) - n_wanted)[len(values) - n_wanted]
    kept = np.flatnonzero(values >= least)
    return kept[np.argsort(-values[kept], kind="stable")[:n_wanted]]
