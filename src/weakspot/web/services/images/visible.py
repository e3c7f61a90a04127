"""The samples that people may look at, as columns that filters read: the discovery half, training and pool.

The confirmation half and the test split are not among them, unless runs are cross-fitted: then either half is looked at in turn.
"""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import AnyArray, ByteArray, FloatArray, IntArray
from weakspot.core.dataset import Dataset, Split, Task
from weakspot.core.failures import class_problems, predicted_classes
from weakspot.pipeline.halves import used_rows
from weakspot.web.services.workspace import Workspace

PARTS = ("discovery half", "training", "pool")
BLOCK_ROWS = 100_000
UNKNOWN, RIGHT, WRONG = -1, 0, 1


@dataclass(frozen=True, kw_only=True, eq=False)
class VisibleSamples:
    """What filters read of every visible sample.

    Args:
        rows: rows of the data set, ascending [n].
        parts: places in `PARTS` [n].
        labels: class codes [n], -1 if unlabelled; all -1 in a multi-label task.
        answers: predicted class codes [n], -1 if unknown; all -1 in a multi-label task.
        results: `RIGHT`, `WRONG` or `UNKNOWN` [n]; with several labels one fails that fails in any class.
        sure: largest probability [n], NaN if unknown.
        truth: probability of the true label [n], NaN if unknown; with several labels the smallest.
    """

    rows: IntArray
    parts: ByteArray
    labels: AnyArray
    answers: AnyArray
    results: AnyArray
    sure: FloatArray
    truth: FloatArray

    def __len__(self) -> int:
        """Return how many samples people may look at."""
        return len(self.rows)

    def place_of(self, row: int) -> int | None:
        """Return the place of a row, None if nobody may look at it."""
        place = int(np.searchsorted(self.rows, row))
        return place if place < len(self.rows) and int(self.rows[place]) == row else None


def visible_samples(workspace: Workspace) -> VisibleSamples:
    return workspace.once("visible samples", lambda: _read(workspace))


def is_visible(workspace: Workspace, row: int) -> bool:
    """Return whether people may look at a sample."""
    return visible_samples(workspace).place_of(row) is not None


def _read(workspace: Workspace) -> VisibleSamples:
    dataset = workspace.samples.dataset
    rows, parts = _visible_rows(workspace)
    is_single = dataset.task is Task.SINGLE_LABEL
    nothing = np.full(len(rows), UNKNOWN, dtype=np.int32)
    sure = _largest(dataset, rows)
    answers = _answers(dataset, rows, sure) if is_single and dataset.has_predictions else nothing
    results, truth = _results(workspace, rows)
    if is_single:
        results = np.where(answers == UNKNOWN, UNKNOWN, results).astype(np.int8)
    return VisibleSamples(
        rows=rows,
        parts=parts,
        labels=dataset.labels[rows].astype(np.int32) if is_single else nothing,
        answers=answers,
        results=results,
        sure=sure,
        truth=truth,
    )


def _visible_rows(workspace: Workspace) -> tuple[IntArray, ByteArray]:
    samples, settings = workspace.samples, workspace.project.settings
    dataset = samples.dataset
    is_evaluated = np.zeros(len(dataset), dtype=np.bool_)
    is_evaluated[used_rows(samples, settings)] = True
    looked_at = workspace.discovery.rows
    if settings.verify.scheme == "cross-fit":
        looked_at = np.concatenate([looked_at, workspace.confirmation.rows])
    others = [dataset.rows_of(split) for split in (Split.TRAIN, Split.POOL)]
    groups = [looked_at, *(rows[~is_evaluated[rows]] for rows in others)]
    rows = np.concatenate(groups).astype(np.int64)
    parts = np.repeat(np.arange(len(groups), dtype=np.uint8), [len(group) for group in groups])
    order = np.argsort(rows, kind="stable")
    return rows[order], parts[order]


def _answers(dataset: Dataset, rows: IntArray, sure: FloatArray) -> AnyArray:
    found = [predicted_classes(dataset, block) for block in _blocks(rows)]
    codes = np.concatenate([np.empty(0, dtype=np.int32), *found]).astype(np.int32)
    return codes if dataset.predictions is not None else np.where(np.isfinite(sure), codes, UNKNOWN)


def _largest(dataset: Dataset, rows: IntArray) -> FloatArray:
    if dataset.probabilities is None:
        return np.full(len(rows), np.nan, dtype=np.float32)
    found = [np.asarray(dataset.probabilities[block]).max(axis=1) for block in _blocks(rows)]
    return np.concatenate([np.empty(0, dtype=np.float32), *found]).astype(np.float32)


def _results(workspace: Workspace, rows: IntArray) -> tuple[AnyArray, FloatArray]:
    dataset = workspace.samples.dataset
    results = np.full(len(rows), UNKNOWN, dtype=np.int8)
    truth: FloatArray = np.full(len(rows), np.nan, dtype=np.float32)
    if not dataset.has_predictions:
        return results, truth
    for problem in class_problems(dataset, rows, workspace.criterion):
        places = np.searchsorted(rows, problem.rows)
        results[places] = np.maximum(results[places], np.where(problem.failed, WRONG, RIGHT))
        truth[places] = np.fmin(truth[places], problem.confidence)
    return results, truth


def _blocks(rows: IntArray) -> list[IntArray]:
    return [rows[start : start + BLOCK_ROWS] for start in range(0, len(rows), BLOCK_ROWS)]
