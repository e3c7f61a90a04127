"""How training samples of two classes lie in a space of embeddings, and on which side others would be put."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray, unit_rows
from weakspot.core.dataset import Task, several_to_a_group
from weakspot.core.failures import Side
from weakspot.core.samples import SampleSet

N_FOLDS = 5
MIN_ROWS = 10
MAX_ROWS = 1_000
SHRINKAGE = 0.1
NORMAL_SPREAD = 1.4826
TYPICAL = 2.0
MOST = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class PairProbe:
    """Training samples of a class and of its rival, and the axis that tells them apart.

    Args:
        own: unit embeddings of the class [n, d].
        rival: unit embeddings of the rival [m, d].
        axis: [d], larger products are nearer to the rival.
        own_place: median and spread of the class along the axis, measured on samples that the axis was not fitted on.
        rival_place: the same of the rival.
        groups: number of the group of every sample of both [n + m], None if every one is its own.
    """

    own: DoubleArray
    rival: DoubleArray
    axis: DoubleArray
    own_place: tuple[float, float]
    rival_place: tuple[float, float]
    groups: IntArray | None = None

    @classmethod
    def of(
        cls, training: SampleSet, own: IntArray, rival: IntArray, space: str
    ) -> "PairProbe | None":
        """Return the probe of two sets of training rows, None if either has too few embeddings."""
        (first, first_rows), (second, second_rows) = (
            _known_embeddings(training, rows, space) for rows in (own, rival)
        )
        if min(len(first), len(second)) < MIN_ROWS:
            return None
        axis = _axis(first, second)
        along, other = np.empty(len(first)), np.empty(len(second))
        groups = several_to_a_group(
            training.dataset.groups[np.concatenate([first_rows, second_rows])]
        )
        # A group is judged by an axis that saw none of its images.
        first_folds, second_folds = (
            (np.arange(len(first)) % N_FOLDS, np.arange(len(second)) % N_FOLDS)
            if groups is None
            else (groups[: len(first)] % N_FOLDS, groups[len(first) :] % N_FOLDS)
        )
        if min(len(np.unique(first_folds)), len(np.unique(second_folds))) < 2:  # noqa: PLR2004 - one to fit, one to judge
            return None
        for fold in range(N_FOLDS):
            part, others = first_folds == fold, second_folds == fold
            fitted = _axis(first[~part], second[~others])
            along[part], other[others] = first[part] @ fitted, second[others] @ fitted
        places = _place(along), _place(other)
        if places[1][0] <= places[0][0]:
            # Told apart no better than by chance: everything lies in the bulk of both.
            middle = float(np.median(np.concatenate([along, other])))
            places = (middle, places[0][1]), (middle, places[1][1])
        return cls(
            own=first,
            rival=second,
            axis=axis,
            own_place=places[0],
            rival_place=places[1],
            groups=groups,
        )

    def is_rival_only(self, embeddings: DoubleArray) -> BoolArray:
        """Return which unit embeddings [n, d] lie in the bulk of the rival and outside that of the class."""
        along = embeddings @ self.axis
        return np.asarray(~self._like_own(along) & self._like_rival(along), dtype=np.bool_)

    def is_either(self, embeddings: DoubleArray) -> BoolArray:
        """Return which unit embeddings [n, d] lie in the bulk of both classes: training labels alone would not decide them."""
        along = embeddings @ self.axis
        return np.asarray(self._like_own(along) & self._like_rival(along), dtype=np.bool_)

    def _like_own(self, along: DoubleArray) -> BoolArray:
        middle, spread = self.own_place
        return np.asarray(along <= middle + TYPICAL * spread, dtype=np.bool_)

    def _like_rival(self, along: DoubleArray) -> BoolArray:
        middle, spread = self.rival_place
        return np.asarray(along >= middle - TYPICAL * spread, dtype=np.bool_)

    def told_apart(self, embeddings: DoubleArray, n_neighbours: int) -> float:
        """Return how often the training samples around unit embeddings [n, d] have the label of most of their own neighbours."""
        both = np.concatenate([self.own, self.rival])
        is_rival = np.arange(len(both)) >= len(self.own)
        around = np.unique(_nearest(embeddings @ both.T, n_neighbours))
        similarities = both[around] @ both.T
        similarities[np.arange(len(around)), around] = -np.inf
        if self.groups is not None:
            similarities[self.groups[around][:, None] == self.groups[None, :]] = -np.inf
        votes = is_rival[_nearest(similarities, n_neighbours)].mean(axis=1)
        return float(np.mean((votes > MOST) == is_rival[around]))


def unit_embeddings(samples: SampleSet, rows: IntArray, space: str) -> DoubleArray:
    """Return the unit embeddings of rows that have one, of an even part where there are very many."""
    return _known_embeddings(samples, rows, space)[0]


def _known_embeddings(
    samples: SampleSet, rows: IntArray, space: str
) -> tuple[DoubleArray, IntArray]:
    chosen = rows[np.arange(MAX_ROWS) * len(rows) // MAX_ROWS] if len(rows) > MAX_ROWS else rows
    found: FloatArray = unit_rows(samples.embeddings(space, chosen))
    is_known = np.isfinite(found).all(axis=1)
    return np.asarray(found[is_known], dtype=np.float64), chosen[is_known]


def pair_rows(
    training: SampleSet, class_name: str, side: Side | None, rival: str | None
) -> tuple[IntArray, IntArray]:
    """Return training rows of a class and of its rival; in a multi-label task those with and without the label."""
    dataset, code = training.dataset, training.dataset.class_code(class_name)
    labelled = training.rows[dataset.is_labelled[training.rows]]
    if dataset.task is Task.SINGLE_LABEL:
        labels = dataset.labels[labelled]
        is_rival = labels != code if rival is None else labels == dataset.class_code(rival)
        return labelled[labels == code], labelled[is_rival]
    has_label = dataset.label_matrix[labelled, code]
    is_own = ~has_label if side is Side.ABSENT else has_label
    return labelled[is_own], labelled[~is_own]


def squared_distance(first: DoubleArray, second: DoubleArray) -> float:
    """Return the squared distance of two means [n, d], [m, d] without what their own noise adds; it may be below zero.

    >>> squared_distance(np.array([[0.0], [2.0]]), np.array([[4.0], [6.0]]))
    14.0
    """
    noise = sum(values.var(axis=0, ddof=1).sum() / len(values) for values in (first, second))
    return float(np.square(first.mean(axis=0) - second.mean(axis=0)).sum() - noise)


def _axis(own: DoubleArray, rival: DoubleArray) -> DoubleArray:
    """Return Fisher's discriminant between two classes, with the shared covariance drawn towards a sphere."""
    centred = np.concatenate([own - own.mean(axis=0), rival - rival.mean(axis=0)])
    covariance = centred.T @ centred / max(len(centred) - 2, 1)
    width = len(covariance)
    # With fewer samples than dimensions the covariance is a guess, and the sphere the better one.
    weight = max(SHRINKAGE, min(0.9, width / (width + len(centred))))
    mean = max(float(np.trace(covariance)) / width, 1e-12)
    shrunk = (1 - weight) * covariance + weight * mean * np.eye(width)
    return np.asarray(np.linalg.solve(shrunk, rival.mean(axis=0) - own.mean(axis=0)))


def _place(along: DoubleArray) -> tuple[float, float]:
    middle = float(np.median(along))
    return middle, NORMAL_SPREAD * float(np.median(np.abs(along - middle)))


def _nearest(similarities: DoubleArray, n_nearest: int) -> IntArray:
    n_nearest = min(n_nearest, similarities.shape[1])
    return np.argpartition(-similarities, n_nearest - 1, axis=1)[:, :n_nearest]
