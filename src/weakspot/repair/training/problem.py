"""What a last layer is trained on, checked, and in coordinates in which training is easy."""

import os
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, FloatArray, IntArray
from weakspot.core.dataset import Task
from weakspot.core.errors import DataError, NotEnoughDataError
from weakspot.core.heads import Head, WorstGroupObjective

CHUNK_BYTES = 1 << 22
FEW_CLASSES = 64


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """Samples with targets, and how much each counts.

    Args:
        features: [n, d], read in chunks and never copied as a whole.
        targets: codes [n] for single-label tasks, which labels each sample has [n, c] for multi-label ones.
        shares: [n], what each sample counts; they sum to one.
        n_classes: how many.
        task: softmax or one sigmoid per label.
    """

    features: FloatArray
    targets: AnyArray
    shares: DoubleArray
    n_classes: int
    task: Task

    @classmethod
    def of(
        cls,
        features: FloatArray,
        targets: AnyArray,
        weights: AnyArray,
        *,
        task: Task,
        n_classes: int | None,
    ) -> "Problem":
        """Return the problem, or say what is wrong with it."""
        features, targets, weights = (
            np.asarray(features),
            np.asarray(targets),
            np.asarray(weights, dtype=np.float64),
        )
        _check_shapes(features, targets, weights)
        _check_weights(weights)
        if n_classes is None and targets.ndim < 2:  # noqa: PLR2004
            raise DataError(
                "Class codes say nothing of how many classes there are.", fix="Give n_classes."
            )
        n_classes = targets.shape[1] if n_classes is None else n_classes
        checked = _codes if task is Task.SINGLE_LABEL else _label_matrix
        return cls(
            features=features,
            targets=checked(targets, n_classes),
            shares=weights / weights.sum(),
            n_classes=n_classes,
            task=task,
        )

    @property
    def n_features(self) -> int:
        return int(self.features.shape[1])

    @property
    def support(self) -> DoubleArray:
        """Return the share [c] of samples that have each label."""
        if self.task is Task.SINGLE_LABEL:
            return np.asarray(
                np.bincount(self.targets, self.shares, self.n_classes), dtype=np.float64
            )
        return np.asarray(self.shares @ self.targets, dtype=np.float64)

    def check_features(self) -> None:
        """Refuse features that are not numbers."""
        if not all(np.isfinite(values).all() for _, values in self.chunks()):
            raise DataError(
                "Some features are missing or not finite.",
                fix="Leave out samples without features.",
            )

    def chunks(self, *, are_copied: bool = True) -> Iterator[tuple[slice, FloatArray]]:
        """Yield places and features of some samples at a time, so few that their logits stay in the processor's cache.

        Fewer still if features are copied, which they are where they are not in single precision.
        """
        is_view = not are_copied and self.features.dtype == np.float32
        n_rows = max(
            1,
            CHUNK_BYTES
            // (4 * (self.n_classes if is_view else max(self.n_classes, self.n_features))),
        )
        for first in range(0, len(self.features), n_rows):
            part = slice(first, min(first + n_rows, len(self.features)))
            yield part, np.asarray(self.features[part], dtype=np.float32)


def check_start(start: Head | None, problem: Problem) -> None:
    """Refuse a layer to start from that does not fit features and classes."""
    wanted = (problem.n_classes, problem.n_features)
    if start is not None and (start.weights.shape != wanted or start.bias.shape != wanted[:1]):
        raise DataError(
            "The last layer to start from has another shape than features and classes ask for.",
            given=start.weights.shape,
            fix=f"It must be {wanted}: give the features that this layer was made for.",
        )


def check_group_objectives(
    group_objectives: tuple[WorstGroupObjective, ...], n_samples: int
) -> None:
    """Refuse groups that overlap or reach beyond the samples."""
    positions = [group for group_objective in group_objectives for group in group_objective]
    everything: IntArray = np.concatenate(positions) if positions else np.zeros(0, np.int64)
    if not len(everything):
        return
    if everything.min() < 0 or everything.max() >= n_samples:
        raise DataError(
            "A worst-group objective names samples that are not trained on.",
            given=(int(everything.min()), int(everything.max())),
        )
    if np.bincount(everything).max() > 1:
        raise DataError(
            "No sample may be in two groups of worst-group objectives.",
            given=int(np.bincount(everything).argmax()),
        )


def _check_shapes(features: AnyArray, targets: AnyArray, weights: AnyArray) -> None:
    if not len(features):
        raise NotEnoughDataError(
            "There is no labelled sample to train the last layer on.", fix="Label training samples."
        )
    if features.ndim != 2:  # noqa: PLR2004
        raise DataError("Features must be a table of samples and dimensions.", given=features.shape)
    if not len(features) == len(targets) == len(weights):
        raise DataError(
            "Features, targets and weights must have the same length.",
            given=(len(features), len(targets), len(weights)),
        )


def _check_weights(weights: DoubleArray) -> None:
    if not np.isfinite(weights).all():
        raise DataError(
            "Some weights are missing or not finite.", given=int((~np.isfinite(weights)).sum())
        )
    if np.any(weights < 0) or not weights.sum() > 0:
        raise DataError(
            "Weights must not be negative, and not all zero.",
            given=(float(weights.min()), float(weights.sum())),
            fix="Choose at least one sample that counts.",
        )


def _codes(targets: AnyArray, n_classes: int) -> IntArray:
    if targets.ndim == 1 and targets.dtype.kind in "iu":
        if targets.min() < 0 or targets.max() >= n_classes:
            raise DataError(
                "Every sample of a single-label task needs exactly one label.",
                given=(int(targets.min()), int(targets.max())),
                fix=f"Codes go from 0 to {n_classes - 1}; leave out unlabelled samples.",
            )
        return targets.astype(np.int64)
    matrix = _label_matrix(targets, n_classes)
    if not np.all(np.count_nonzero(matrix, axis=1) == 1):
        raise DataError(
            "Every sample of a single-label task needs exactly one label.",
            fix="Leave out unlabelled samples.",
        )
    return np.asarray(matrix.argmax(axis=1), dtype=np.int64)


def _label_matrix(targets: AnyArray, n_classes: int) -> BoolArray:
    if targets.ndim != 2 or targets.shape[1] != n_classes:  # noqa: PLR2004
        raise DataError(
            "Targets must say for every class whether a sample has it.",
            given=targets.shape,
            fix=f"{n_classes} columns.",
        )
    return np.asarray(targets, dtype=np.bool_)


MAX_WORKERS = 16
MIN_PRODUCTS = 5e6


def one_thread_each() -> AbstractContextManager[object]:
    """Return a context in which every matrix product runs in the thread that asks for it.

    Threads that wait for each other at every small step lose a hundredfold on a machine that does other work as well.
    """
    limit = _controller(len(sys.modules)).limit
    return limit(limits=1, user_api="blas")  # type: ignore[no-any-return]


@lru_cache(maxsize=1)
def _controller(_n_imported: int) -> Any:
    """Return who sets the threads of the libraries that are loaded; looked for again after further imports only, since it takes long."""
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped, unused-ignore]

    return ThreadpoolController()


@contextmanager
def workers_for(problem: Problem) -> Iterator[Executor | None]:
    """Yield threads that chunks of a problem are shared out to, None if each product is large enough to be shared out itself."""
    is_few = problem.n_classes <= FEW_CLASSES
    with one_thread_each() if is_few else nullcontext():
        if not is_few or problem.features.size * problem.n_classes < MIN_PRODUCTS:
            yield None
            return
        n_cores = (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
        with ThreadPoolExecutor(min(MAX_WORKERS, n_cores)) as threads:
            yield threads


MIN_DEVIATION = 1e-6
LARGE_CENTRE = 30.0
MAX_TURNED, SMALL_WIDTH = 4_096, 512
ROWS_A_FEATURE = 16
FIRST_SAMPLES = 64


@dataclass(frozen=True, kw_only=True, eq=False)
class Coordinates:
    """Centre and deviation of features, and their principal directions, applied to layers [c, d + 1] instead of to the features.

    Args:
        centre: [d] mean of the samples.
        deviation: [d] standard deviation, one where a feature is constant.
        directions: [d, d] principal directions of standardised features as columns; None where finding them does not pay.
        spectrum: [d] mean square of standardised features along each direction.
    """

    centre: DoubleArray
    deviation: DoubleArray
    directions: FloatArray | None
    spectrum: FloatArray

    @classmethod
    def of(cls, problem: Problem) -> "Coordinates":
        """Measure the features of a problem."""
        centre, deviation = _moments(problem)
        directions, spectrum = _principal(problem, centre, deviation)
        return cls(centre=centre, deviation=deviation, directions=directions, spectrum=spectrum)

    @classmethod
    def plain_features(cls, width: int) -> "Coordinates":
        return cls(
            centre=np.zeros(width),
            deviation=np.ones(width),
            directions=None,
            spectrum=np.ones(width, np.float32),
        )

    @property
    def subtracted(self) -> FloatArray | None:
        """Return the centre if it is so far from zero that single precision needs it subtracted from features, else None."""
        is_far = np.abs(self.centre) > LARGE_CENTRE * self.deviation
        return self.centre.astype(np.float32) if is_far.any() else None

    def inwards(self, head: Head) -> FloatArray:
        """Return the layer [c, d + 1] in these coordinates that answers like a head on plain features."""
        weights = np.asarray(head.weights, dtype=np.float64)
        inner = (weights * self.deviation).astype(np.float32)
        turned = inner if self.directions is None else inner @ self.directions
        return np.column_stack([turned, (head.bias + weights @ self.centre).astype(np.float32)])

    def plain(self, layer: FloatArray, *, is_centred: bool) -> tuple[FloatArray, FloatArray]:
        """Return weights [c, d] and bias [c] for features as they are, or with the centre subtracted."""
        turned = layer[:, :-1]
        weights: FloatArray = turned if self.directions is None else turned @ self.directions.T
        weights = np.divide(weights, self.deviation.astype(np.float32), dtype=np.float32)
        bias = layer[:, -1] if is_centred else layer[:, -1] - weights @ self.centre
        return weights, bias.astype(np.float32)

    def outwards(self, layer: FloatArray, task: Task) -> Head:
        weights, bias = self.plain(layer, is_centred=False)
        return Head(weights=weights, bias=bias, task=task)

    def slope(self, weights: FloatArray, bias: FloatArray, *, is_centred: bool) -> FloatArray:
        """Return the slope [c, d + 1] in these coordinates for those along plain weights [c, d], which it uses up, and bias."""
        if not is_centred:
            weights -= np.outer(bias, self.centre.astype(np.float32))
        weights /= self.deviation.astype(np.float32)
        found = np.empty((len(bias), weights.shape[1] + 1), np.float32)
        found[:, :-1] = weights if self.directions is None else weights @ self.directions
        found[:, -1] = bias
        return found


def _moments(problem: Problem) -> tuple[DoubleArray, DoubleArray]:
    """Return mean and standard deviation of features, by sums around the mean of the first samples."""
    shift = np.asarray(problem.features[:FIRST_SAMPLES], dtype=np.float32).mean(axis=0)
    sums, squares = np.zeros(problem.n_features), np.zeros(problem.n_features)
    with np.errstate(all="ignore"):
        for _, values in problem.chunks():
            around = values - shift
            sums += np.ones(len(around), np.float32) @ around
            squares += np.einsum("ij,ij->j", around, around)
    if not (np.isfinite(sums).all() and np.isfinite(squares).all()):
        raise DataError(
            "Some features are missing or not finite.", fix="Leave out samples without features."
        )
    mean = sums / len(problem.features)
    centre = mean + shift
    deviation = np.sqrt(np.maximum(squares / len(problem.features) - mean**2, 0.0))
    least = MIN_DEVIATION * np.maximum(np.abs(centre), deviation.max())
    return centre, np.where(deviation > least, deviation, 1.0)


def _principal(
    problem: Problem, centre: DoubleArray, deviation: DoubleArray
) -> tuple[FloatArray | None, FloatArray]:
    """Return principal directions and the spectrum of standardised features, from samples drawn evenly by what they count."""
    width, n_samples = problem.n_features, len(problem.features)
    if width > (min(SMALL_WIDTH, n_samples) if n_samples < 4 * width else MAX_TURNED):
        return None, np.ones(width, np.float32)
    n_generated = min(n_samples, max(ROWS_A_FEATURE * width, MAX_TURNED))
    drawn = np.searchsorted(
        np.cumsum(problem.shares), (np.arange(n_generated) + 0.5) / n_generated
    ).clip(0, n_samples - 1)
    products = np.zeros((width, width), np.float32)
    for first in range(0, n_generated, MAX_TURNED // 2):
        values = np.asarray(
            problem.features[drawn[first : first + MAX_TURNED // 2]], dtype=np.float32
        )
        values -= centre.astype(np.float32)
        values /= deviation.astype(np.float32)
        products += values.T @ values
    with one_thread_each():
        spectrum, directions = np.linalg.eigh(products / np.float32(n_generated))
    return np.ascontiguousarray(directions), np.maximum(spectrum, 0).astype(np.float32)
