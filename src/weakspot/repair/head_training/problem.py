"""What a last layer is trained on, checked."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, FloatArray, IntArray
from weakspot.core.dataset import Task
from weakspot.core.errors import DataError, NotEnoughDataError
from weakspot.core.heads import Head
from weakspot.core.training_sets import WorstGroupObjective

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
        n_known = (
            n_classes if n_classes is not None else targets.shape[1] if targets.ndim > 1 else None
        )
        if n_known is None:
            raise DataError(
                "Class codes say nothing of how many classes there are.", fix="Give n_classes."
            )
        known = (
            _codes(targets, n_known)
            if task is Task.SINGLE_LABEL
            else _label_matrix(targets, n_known)
        )
        return cls(
            features=features,
            targets=known,
            shares=weights / weights.sum(),
            n_classes=n_known,
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
            "A group_objective names samples that are not trained on.",
            given=(int(everything.min()), int(everything.max())),
        )
    if np.bincount(everything).max() > 1:
        raise DataError(
            "No sample may be in two groups of group_objectives.",
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
