"""Failures as components of a mixture over embeddings, labels and predictions.

How the mixture is begun and fitted, the principal components it is fitted to, and which of its components are slices. Every component
has a place among the embeddings, a label profile and a prediction profile.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from pydantic import JsonValue

from weakspot.core.arrays import (
    AnyArray,
    BoolArray,
    DoubleArray,
    FloatArray,
    IntArray,
    generator,
    unit_rows,
)
from weakspot.core.assistants import NO_ASSISTANTS, Assistants
from weakspot.core.bounds import Bounds, Count, NonNegative, Positive
from weakspot.core.dataset import Dataset, Task, several_to_a_group
from weakspot.core.discoverers import ClassDiscoverer, ClassSamples
from weakspot.core.failures import (
    ClassProblem,
    FailureCriterion,
    Side,
    class_problems,
    predicted_classes,
    predicted_labels,
)
from weakspot.core.group_tests import deal_folds
from weakspot.core.record import PackedArray
from weakspot.core.roles import Discovery
from weakspot.core.rules import MixtureRule
from weakspot.core.run import ClassNote
from weakspot.core.samples import Need, SampleSet, obstacle, separating_cut
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.core.statistics import association

FIT_CHUNK_ROWS = 8_192
WARM_ROWS = 16_384
MIN_SHARE = 1e-12
PROFILE_PRIOR = 1.0
EMPTY = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class Material:
    """What a mixture is fitted to; samples are ordered by label.

    Args:
        features: [n, 2k + q + 1]: coordinates, their squares, predicted probabilities, and ones.
        n_dimensions: k.
        labels: [n] codes, ascending.
        n_labels: l.
    """

    features: FloatArray
    n_dimensions: int
    labels: IntArray
    n_labels: int

    @classmethod
    def of(
        cls, reduced: FloatArray, labels: IntArray, predictions: FloatArray, *, n_labels: int
    ) -> "Material":
        """Lay out coordinates [n, k], ascending label codes [n] and predicted probabilities [n, q]."""
        n_dimensions = reduced.shape[1]
        features = np.empty(
            (len(reduced), 2 * n_dimensions + predictions.shape[1] + 1), dtype=np.float32
        )
        features[:, :n_dimensions] = reduced
        np.square(reduced, out=features[:, n_dimensions : 2 * n_dimensions])
        features[:, 2 * n_dimensions : -1] = predictions
        features[:, -1] = 1.0
        return cls(features=features, n_dimensions=n_dimensions, labels=labels, n_labels=n_labels)

    def __len__(self) -> int:
        return len(self.features)

    def only(self, places: IntArray) -> "Material":
        """Return some of the samples, in ascending order of place."""
        return replace(self, features=self.features[places], labels=self.labels[places])

    @property
    def reduced(self) -> FloatArray:
        """Return the coordinates [n, k]."""
        return self.features[:, : self.n_dimensions]

    @property
    def predictions(self) -> FloatArray:
        """Return the predicted probabilities [n, q]."""
        return self.features[:, 2 * self.n_dimensions : -1]

    @cached_property
    def label_shares(self) -> DoubleArray:
        """Return the share of every label [l]."""
        return np.bincount(self.labels, minlength=self.n_labels) / len(self)

    @cached_property
    def mean_predictions(self) -> DoubleArray:
        """Return the mean predicted probabilities [q]."""
        return np.asarray(self.predictions.mean(axis=0, dtype=np.float64))


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixture:
    """A fitted mixture.

    Args:
        means: [m, k].
        variances: [m, k].
        log_weights: [m] logarithms of the components' shares.
        label_profiles: [m, l] share of every label in a component.
        prediction_profiles: [m, q] mean predicted probability in a component.
        log_likelihood: mean over samples, with the weights of label and prediction.
        n_steps: steps that were made.
    """

    means: DoubleArray
    variances: DoubleArray
    log_weights: DoubleArray
    label_profiles: DoubleArray
    prediction_profiles: DoubleArray
    log_likelihood: float = -np.inf
    n_steps: int = 0

    @property
    def n_components(self) -> int:
        """Return m."""
        return len(self.means)

    @property
    def embedding_terms(self) -> tuple[DoubleArray, DoubleArray]:
        """Return what coordinates and squares [m, 2k] are multiplied by, and what is added [m]."""
        precisions = 1.0 / self.variances
        logs = np.log(2.0 * np.pi * self.variances)
        added = self.log_weights - 0.5 * (np.square(self.means) * precisions + logs).sum(axis=1)
        return np.concatenate([self.means * precisions, -0.5 * precisions], axis=1), added


def fit_mixture(
    material: Material, start: IntArray, settings: "MixtureDiscoverer", *, n_components: int
) -> Mixture:
    """Fit a mixture, beginning with the component [n] that every sample is in at the start.

    Of very many samples an even part is fitted first; the steps over all of them then begin near the end.
    """
    stride = len(material) // WARM_ROWS
    if stride > 1:
        places = np.arange(0, len(material), stride)
        warm = fit_mixture(
            material.only(places), start[places], settings, n_components=n_components
        )
        return _climb(material, replace(warm, log_likelihood=-np.inf), settings)
    first = _maximise(material, settings, *_sums_of_parts(material, start, n_components))
    return _climb(material, first, settings)


def _climb(material: Material, found: Mixture, settings: "MixtureDiscoverer") -> Mixture:
    for step in range(1, settings.n_steps + 1):
        *sums, log_likelihood = _swept(material, found, settings)
        gain = log_likelihood - found.log_likelihood
        found = replace(
            _maximise(material, settings, *sums), log_likelihood=log_likelihood, n_steps=step
        )
        if abs(gain) < settings.tolerance:
            break
    return found


def held_out_odds(
    material: Material, mixture: Mixture, settings: "MixtureDiscoverer", fold_of: IntArray
) -> DoubleArray:
    """Return the log-odds of every component [m, n] by embeddings alone, each sample judged by what the other folds say.

    Components keep their identity: posteriors come from the mixture itself, and only what they are averaged over changes. A
    component that is made of the samples which failed fits those better than unseen samples of the same kind; this takes it out.
    """
    folds = [np.flatnonzero(fold_of == fold) for fold in range(int(fold_of.max(initial=-1)) + 1)]
    parts = [
        _swept(material.only(places), mixture, settings)[:2] for places in folds if len(places)
    ]
    odds = np.zeros((mixture.n_components, len(material)))
    for left_out, places in zip(parts, (places for places in folds if len(places)), strict=True):
        features, labels = (
            sum(
                (part[of] for part in parts if part is not left_out),
                start=np.zeros_like(left_out[of]),
            )
            for of in range(2)
        )
        others = _maximise(material, settings, features, labels)
        odds[:, places] = log_odds(material.reduced[places], others)
    return odds


def log_odds(reduced: FloatArray, mixture: Mixture) -> DoubleArray:
    """Return the log-odds of every component against all others together [m, n], judged by the embeddings alone."""
    factors, added = mixture.embedding_terms
    columns = np.concatenate([reduced, np.square(reduced)], axis=1)
    logs = (factors.astype(np.float32) @ columns.T).astype(np.float64) + added[:, None]
    odds = np.zeros(logs.shape)
    if len(logs) == 1:
        return odds
    winners, places = logs.argmax(axis=0), np.arange(logs.shape[1])
    largest = logs[winners, places]
    shares = np.exp((logs - largest).astype(np.float32))
    shares[winners, places] = 0.0
    rest = shares.sum(axis=0)
    np.subtract(logs, largest + np.log1p(rest - shares), out=odds)
    logs[winners, places] = -np.inf
    second = logs.max(axis=0)
    odds[winners, places] = largest - second - np.log(np.exp(logs - second).sum(axis=0))
    return odds


def bayesian_criterion(mixture: Mixture, n_samples: int) -> float:
    """Return the Bayesian information criterion; smaller is better."""
    n_free = mixture.means.size + mixture.variances.size + mixture.n_components - 1
    for profiles in (mixture.label_profiles, mixture.prediction_profiles):
        n_free += mixture.n_components * (profiles.shape[1] - 1)
    return float(n_free * np.log(n_samples) - 2.0 * n_samples * mixture.log_likelihood)


def _swept(
    material: Material, mixture: Mixture, settings: "MixtureDiscoverer"
) -> tuple[DoubleArray, DoubleArray, float]:
    """Return the sums of features and of labels by component, and the mean log-likelihood."""
    terms, added = mixture.embedding_terms
    profile_terms = settings.prediction_weight * _safe_log(mixture.prediction_profiles)
    factors = np.concatenate([terms, profile_terms, added[:, None]], axis=1).astype(np.float32)
    label_terms = (settings.label_weight * _safe_log(mixture.label_profiles)).astype(np.float32)
    sums, labels, likelihood = np.zeros(factors.shape), np.zeros(label_terms.shape), 0.0
    for start in range(0, len(material), FIT_CHUNK_ROWS):
        block, codes = (
            material.features[start : start + FIT_CHUNK_ROWS],
            material.labels[start : start + FIT_CHUNK_ROWS],
        )
        shares = factors @ block.T
        if material.n_labels > 1:
            shares += label_terms[:, codes]
        largest = shares.max(axis=0)
        shares -= largest
        np.exp(shares, out=shares)
        total = shares.sum(axis=0)
        shares /= total
        likelihood += float(np.sum(largest + np.log(total), dtype=np.float64))
        sums += shares @ block
        _add_by_label(labels, shares, codes)
    return sums, labels, likelihood / len(material)


def _sums_of_parts(
    material: Material, parts: IntArray, n_components: int
) -> tuple[DoubleArray, DoubleArray]:
    sums = np.zeros((n_components, material.features.shape[1]))
    labels = np.zeros((n_components, material.n_labels))
    numbers = np.arange(n_components)[:, None]
    for start in range(0, len(material), FIT_CHUNK_ROWS):
        block, codes = (
            material.features[start : start + FIT_CHUNK_ROWS],
            material.labels[start : start + FIT_CHUNK_ROWS],
        )
        shares = (parts[None, start : start + FIT_CHUNK_ROWS] == numbers).astype(np.float32)
        sums += shares @ block
        _add_by_label(labels, shares, codes)
    return sums, labels


def _add_by_label(labels: DoubleArray, shares: FloatArray, codes: IntArray) -> None:
    # Labels ascend, so that each of them is one run.
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    labels[:, codes[starts]] += np.add.reduceat(shares, starts, axis=1)


def _maximise(
    material: Material, settings: "MixtureDiscoverer", features: DoubleArray, labels: DoubleArray
) -> Mixture:
    """Return the mixture that fits best to sums of samples, drawn towards the shares in all of the material."""
    n_dimensions = material.n_dimensions
    counts = features[:, -1:] + EMPTY
    means = features[:, :n_dimensions] / counts
    variances = np.maximum(
        features[:, n_dimensions : 2 * n_dimensions] / counts - np.square(means), 0.0
    )
    within = (counts * variances).sum(axis=0) / counts.sum()
    prior = settings.variance_prior
    variances = (counts * variances + prior * within) / (counts + prior) + settings.regularisation
    said = features[:, 2 * n_dimensions : -1]
    return Mixture(
        means=means,
        variances=variances,
        log_weights=np.log(counts[:, 0] / counts.sum()),
        label_profiles=(labels + PROFILE_PRIOR * material.label_shares) / (counts + PROFILE_PRIOR),
        prediction_profiles=(said + PROFILE_PRIOR * material.mean_predictions)
        / (counts + PROFILE_PRIOR),
    )


def _safe_log(shares: AnyArray) -> DoubleArray:
    return np.asarray(np.log(np.maximum(shares, MIN_SHARE)), dtype=np.float64)


CHUNK_ROWS = 16_384
MAX_PART = 16_384
N_ROUNDS = 10
FAILURE_SHARE = 0.5


def k_means_parts(reduced: FloatArray, n_parts: int, draws: np.random.Generator) -> IntArray:
    """Return the nearest of n_parts centres for every sample [n]; centres are found on a random part of the samples."""
    chosen = (
        reduced
        if len(reduced) <= MAX_PART
        else reduced[np.sort(draws.permutation(len(reduced))[:MAX_PART])]
    )
    return nearest(reduced, k_means_centres(np.ascontiguousarray(chosen), n_parts, draws))


def k_means_centres(points: FloatArray, n_parts: int, draws: np.random.Generator) -> FloatArray:
    """Return n_parts centres [n_parts, k]: spread-out samples, then a few rounds of averaging."""
    centres = _spread_out(points, n_parts, draws)
    for _ in range(N_ROUNDS):
        parts = nearest(points, centres)
        counts = np.bincount(parts, minlength=n_parts)
        order = np.argsort(parts, kind="stable")
        filled = np.flatnonzero(counts)
        starts = np.concatenate([[0], np.cumsum(counts[filled])[:-1]])
        moved = centres.copy()
        moved[filled] = np.add.reduceat(points[order], starts, axis=0) / counts[filled, None]
        if np.array_equal(moved, centres):
            break
        centres = moved
    return centres


def confusion_parts(
    reduced: FloatArray,
    labels: IntArray,
    predicted: IntArray,
    n_parts: int,
    draws: np.random.Generator,
) -> IntArray:
    """Return parts [n] that each lie in one cell of the confusion matrix; half of them are for cells of failures.

    Cells get parts by their size; a cell with several is split by k-means, and samples of cells that got none go to the
    nearest centre.
    """
    cells, cell_of = np.unique(np.stack([labels, predicted]), axis=1, return_inverse=True)
    cell_of = np.asarray(cell_of).ravel()
    counts = np.bincount(cell_of).astype(np.float64)
    allotted = _allot(counts, cells[0] != cells[1], n_parts)
    parts = np.full(len(reduced), -1, dtype=np.int64)
    centres: list[FloatArray] = []
    first = 0
    for cell in np.flatnonzero(allotted):
        inside = np.flatnonzero(cell_of == cell)
        found = k_means_parts(reduced[inside], int(allotted[cell]), draws)
        parts[inside] = first + found
        centres += [
            reduced[inside[found == part]].mean(axis=0)
            for part in range(allotted[cell])
            if np.any(found == part)
        ]
        first += int(allotted[cell])
    left = parts < 0
    if left.any():
        numbers = np.unique(parts[~left])
        parts[left] = numbers[nearest(reduced[left], np.stack(centres))]
    return parts


def nearest(points: FloatArray, centres: FloatArray) -> IntArray:
    """Return the nearest centre of every point [n]."""
    found = np.empty(len(points), dtype=np.int64)
    lengths = np.square(centres).sum(axis=1)
    for start in range(0, len(points), CHUNK_ROWS):
        block = points[start : start + CHUNK_ROWS]
        found[start : start + len(block)] = np.argmin(
            lengths[:, None] - 2.0 * (centres @ block.T), axis=0
        )
    return found


def _spread_out(points: FloatArray, n_parts: int, draws: np.random.Generator) -> FloatArray:
    """Draw centres one by one, each with a chance that grows with the squared distance to those before."""
    centres = np.empty((n_parts, points.shape[1]), dtype=np.float32)
    centres[0] = points[draws.integers(len(points))]
    lengths = np.square(points).sum(axis=1, dtype=np.float64)
    distances = np.full(len(points), np.inf)
    for place in range(1, n_parts):
        last = centres[place - 1]
        distances = np.minimum(
            distances, np.maximum(lengths - 2.0 * (points @ last) + float(last @ last), 0.0)
        )
        total = np.cumsum(distances)
        drawn = draws.random() * total[-1]
        centres[place] = points[
            min(int(np.searchsorted(total, drawn, side="right")), len(points) - 1)
        ]
    return centres


def _allot(counts: DoubleArray, is_failure: AnyArray, n_parts: int) -> IntArray:
    weights = counts.copy()
    for side, share in ((is_failure, FAILURE_SHARE), (~is_failure, 1.0 - FAILURE_SHARE)):
        if side.any():
            weights[side] *= share / counts[side].sum()
    given = np.zeros(len(counts), dtype=np.int64)
    for _ in range(n_parts):
        wanting = np.where(given < counts, weights / (given + 1), -1.0)
        best = int(np.argmax(np.round(wanting, 12)))
        given[best] += wanting[best] > 0
    return given


MIN_VARIANCE = 1e-9
MIN_VARIANCE_SHARE = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class Reduction:
    """An affine map to few dimensions.

    Args:
        centre: [d] subtracted from unit vectors.
        projection: [k, d], scaled so that the reduced samples have a mean variance of one.
    """

    centre: FloatArray
    projection: FloatArray

    def apply(self, samples: SampleSet, space: str, rows: IntArray) -> FloatArray:
        """Return the rows in few dimensions [n, k]."""
        reduced = np.empty((len(rows), len(self.projection)), dtype=np.float32)
        for start in range(0, len(rows), CHUNK_ROWS):
            # Rows are scaled after they have become short.
            embeddings = samples.embeddings(space, rows[start : start + CHUNK_ROWS])
            block = np.matmul(
                embeddings, self.projection.T, out=reduced[start : start + len(embeddings)]
            )
            block *= _one_over_length(embeddings)[:, None]
        reduced -= self.projection @ self.centre
        return reduced


def with_embedding(samples: SampleSet, space: str, rows: IntArray) -> IntArray:
    """Return the rows that have an embedding, ordered by sample id."""
    found = [rows[:0]]
    for start in range(0, len(rows), CHUNK_ROWS):
        part = rows[start : start + CHUNK_ROWS]
        found.append(part[np.isfinite(samples.embeddings(space, part)).all(axis=1)])
    kept = np.concatenate(found)
    return kept[
        np.argsort(np.array(samples.dataset.sample_ids(kept), dtype=np.str_), kind="stable")
    ]


def fit_reduction(
    samples: SampleSet, space: str, rows: IntArray, *, n_dimensions: int
) -> Reduction | None:
    """Return the principal components of the rows' unit vectors; None when all embeddings are alike.

    Directions whose variance is nothing beside the first one's are left out, so there can be fewer than asked for.
    """
    if not len(rows):
        return None
    width = samples.space(space).embeddings.shape[1]
    directions = _few_rows if len(rows) <= width else _many_rows
    centre, variances, axes = directions(samples, space, rows, n_dimensions)
    if not len(variances) or variances[0] < MIN_VARIANCE:
        return None
    kept = variances > MIN_VARIANCE_SHARE * variances[0]
    scale = 1.0 / np.sqrt(variances[kept].mean())
    return Reduction(
        centre=centre.astype(np.float32),
        projection=np.asarray(axes[kept] * scale, dtype=np.float32),
    )


def _few_rows(
    samples: SampleSet, space: str, rows: IntArray, n_most: int
) -> tuple[DoubleArray, DoubleArray, DoubleArray]:
    """Return mean, variances in falling order and axes [k, d] by the products of rows with rows."""
    embeddings = unit_rows(samples.embeddings(space, rows)).astype(np.float64)
    centre = embeddings.mean(axis=0)
    embeddings -= centre
    values, left = np.linalg.eigh(embeddings @ embeddings.T / len(rows))
    values, left = _largest(values, left, n_most)
    lengths = np.sqrt(np.maximum(values, MIN_VARIANCE**2) * len(rows))
    return centre, values, (left.T @ embeddings) / lengths[:, None]


def _many_rows(
    samples: SampleSet, space: str, rows: IntArray, n_most: int
) -> tuple[DoubleArray, DoubleArray, DoubleArray]:
    """Return the same by the covariance, summed over pieces.

    Pieces are shifted by a guess of the mean first: what is then left of it is small, and 32-bit products lose nothing.
    """
    guess = unit_rows(samples.embeddings(space, rows[:: max(1, len(rows) // CHUNK_ROWS)])).mean(
        axis=0
    )
    total = np.zeros(len(guess))
    products = np.zeros((len(guess), len(guess)))
    for start in range(0, len(rows), CHUNK_ROWS):
        embeddings = samples.embeddings(space, rows[start : start + CHUNK_ROWS])
        embeddings *= _one_over_length(embeddings)[:, None]
        embeddings -= guess
        total += embeddings.sum(axis=0)
        products += embeddings.T @ embeddings
    shift = total / len(rows)
    values, axes = np.linalg.eigh(products / len(rows) - np.outer(shift, shift))
    values, axes = _largest(values, axes, n_most)
    return guess + shift, values, axes.T


def _largest(values: AnyArray, axes: AnyArray, n_most: int) -> tuple[DoubleArray, DoubleArray]:
    return np.maximum(values[::-1][:n_most], 0.0), axes[:, ::-1][:, :n_most]


def _one_over_length(embeddings: FloatArray) -> FloatArray:
    lengths = np.sqrt(np.einsum("nd,nd->n", embeddings, embeddings))
    return np.asarray(1.0 / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)


@dataclass(frozen=True, kw_only=True, eq=False)
class Group:
    """Samples of one mixture, ordered by label and then by sample id.

    Args:
        problems: the class problems that the samples belong to.
        columns: prediction column of every problem's label.
        rows: rows of the data set [n].
        labels: place of every sample's problem [n], ascending.
        predictions: predicted probabilities [n, q]; one and zeros where only the predicted label is known.
        predicted: column of the predicted label [n].
        n_without: samples of every problem that have no embedding.
    """

    problems: tuple[ClassProblem, ...]
    columns: tuple[int, ...]
    rows: IntArray
    labels: IntArray
    predictions: FloatArray
    predicted: IntArray
    n_without: tuple[int, ...]

    @property
    def title(self) -> str:
        return "\n".join(problem.title for problem in self.problems)

    def known(self, place: int) -> tuple[IntArray, ClassProblem]:
        """Return where the samples of a problem are in the group, and the problem with these samples in this order."""
        problem = self.problems[place]
        places = np.flatnonzero(self.labels == place)
        order = np.argsort(problem.rows)
        found = order[np.searchsorted(problem.rows, self.rows[places], sorter=order)]
        return places, problem.only(found)

    def only(self, places: IntArray) -> "Group":
        """Return the group with some of its samples, in ascending order of place."""
        return replace(
            self,
            rows=self.rows[places],
            labels=self.labels[places],
            predictions=self.predictions[places],
            predicted=self.predicted[places],
        )


def groups_of(
    samples: SampleSet, problems: Sequence[ClassProblem], space: str, *, per_class: bool
) -> Iterator[Group]:
    """Yield one group for every problem (`per_class`), for all of them (single-label) or for every label (multi-label)."""
    bundles: list[tuple[ClassProblem, ...]]
    if per_class:
        bundles = [(problem,) for problem in problems]
    elif samples.dataset.task is Task.SINGLE_LABEL:
        bundles = [tuple(problems)] if problems else []
    else:
        names = dict.fromkeys(problem.class_name for problem in problems)
        bundles = [
            tuple(problem for problem in problems if problem.class_name == name) for name in names
        ]
    for bundle in bundles:
        yield _group(samples, bundle, space)


def _group(samples: SampleSet, problems: tuple[ClassProblem, ...], space: str) -> Group:
    parts = [with_embedding(samples, space, problem.rows) for problem in problems]
    rows = np.concatenate(parts)
    predictions, predicted = _said(samples.dataset, rows, problems[0].class_name)
    return Group(
        problems=problems,
        columns=tuple(_column(samples.dataset, problem) for problem in problems),
        rows=rows,
        labels=np.repeat(np.arange(len(parts)), [len(part) for part in parts]),
        predictions=predictions,
        predicted=predicted,
        n_without=tuple(
            len(problem.rows) - len(part) for problem, part in zip(problems, parts, strict=True)
        ),
    )


def _column(dataset: Dataset, problem: ClassProblem) -> int:
    return (
        dataset.class_code(problem.class_name)
        if problem.side is None
        else int(problem.side is Side.ABSENT)
    )


def _said(dataset: Dataset, rows: IntArray, class_name: str) -> tuple[FloatArray, IntArray]:
    """Return predicted probabilities [n, q] and the column of the predicted label [n]; multi-label: has it, lacks it."""
    if dataset.task is Task.SINGLE_LABEL:
        predicted = predicted_classes(dataset, rows)
        probabilities = (
            None
            if dataset.probabilities is None
            else np.asarray(dataset.probabilities[rows], dtype=np.float32)
        )
        return _one_hot(
            predicted, dataset.n_classes
        ) if probabilities is None else probabilities, predicted
    code = dataset.class_code(class_name)
    predicted = (~predicted_labels(dataset, rows)[:, code]).astype(np.int64)
    if dataset.probabilities is None:
        return _one_hot(predicted, 2), predicted
    positive = np.asarray(dataset.probabilities[rows, code], dtype=np.float32)
    return np.stack([positive, 1.0 - positive], axis=1), predicted


def _one_hot(codes: IntArray, width: int) -> FloatArray:
    return np.asarray(codes[:, None] == np.arange(width), dtype=np.float32)


MIN_CLASS_SHARE = 0.3


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedGroup:
    """A group, what its embeddings were reduced by, its mixture, and held-out log-odds of every component [m, n]."""

    group: Group
    reduction: Reduction
    mixture: Mixture
    odds: DoubleArray

    def components_of(self, place: int) -> IntArray:
        """Return the components to which the class of a problem contributes a large share."""
        return np.flatnonzero(self.mixture.label_profiles[:, place] >= MIN_CLASS_SHARE)

    def surplus(self, component: int) -> float:
        """Return by how much a label is predicted more often than it is true in a component, for the label where that is most."""
        profile = self.mixture.prediction_profiles[component].copy()
        np.subtract.at(
            profile, np.asarray(self.group.columns), self.mixture.label_profiles[component]
        )
        return float(profile.max())

    def rule(self, component: int, threshold: float, *, space: str, encoder_id: str) -> MixtureRule:
        return MixtureRule(
            space=space,
            encoder_id=encoder_id,
            centre=PackedArray.of(self.reduction.centre),
            projection=PackedArray.of(self.reduction.projection),
            means=PackedArray.of(self.mixture.means),
            variances=PackedArray.of(self.mixture.variances),
            log_weights=tuple(self.mixture.log_weights.tolist()),
            chosen=component,
            threshold=threshold,
        )


BIC_SIZES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
MIN_COMPONENTS = 2
N_FOLDS = 5
BESIDE_OTHERS: dict[str, JsonValue] = {"max_samples": 2_000}
"""Beside other methods it need not see every sample of a large class; named alone it does."""


@dataclass(frozen=True, kw_only=True)
class MixtureDiscoverer(ClassDiscoverer):
    """Finds slices as components of an error-aware mixture; membership is by the embedding alone.

    After Eyuboglu and others, *Domino: Discovering Systematic Errors with Cross-Modal Embeddings* (2022), and Plumb and others,
    *Towards a More Rigorous Science of Blindspot Discovery in Image Classification Models* (2023).

    Args:
        space: which embeddings are read.
        n_components: how many components; `bic` tries 2 to 64 and takes the best by the Bayesian information criterion.
        n_slices: at most so many slices a class.
        per_class: whether every class gets a mixture of its own; otherwise one mixture serves all classes (multi-label: one
            serves the samples that have a label and those that lack it).
        ranking: `separation`: association of held-out membership with failure; `errors`: failures times failure rate inside;
            `profile`: largest surplus of the predicted over the true label in the component.
        cut: where membership begins. `separating`: at the held-out score that separates the class's failures best; `posterior`:
            where the component is likelier than all others together.
        start: where fitting begins: `k-means` parts of the embeddings, or parts of the `confusion` matrix.
        label_weight: how much the label counts beside the embedding.
        prediction_weight: how much the prediction counts beside the embedding.
        n_dimensions: principal components of the embeddings that are kept at most.
        rows_per_dimension: no more dimensions are kept than there are so many samples for each.
        rows_per_component: there are no more components than there are so many samples for each, and at least two.
        regularisation: added to every variance, in units of the mean variance.
        variance_prior: a component's variances are drawn towards the mean of all components' as if by so many further samples.
        tolerance: fitting ends when the mean log-likelihood grows by less.
        n_steps: fitting ends after so many steps.
        min_members: slices with fewer samples are not reported.
        min_failures: classes and slices with fewer failures are passed over.
        min_right: classes with fewer samples that did not fail are passed over.
        max_samples: a mixture is fitted to a random part of more samples than this.

    >>> from weakspot.testing.examples import CRITERION, discovery_samples
    >>> found = MixtureDiscoverer().discover(discovery_samples(), CRITERION, seed=0)
    >>> found.slices[0].class_name, found.slices[0].n_found
    ('disc', 16)
    """

    method = "mixture"
    needs = (Need.EMBEDDINGS,)
    auto_place = 7
    auto_parameters = BESIDE_OTHERS
    space: str = "clip"
    n_components: Annotated[int, Bounds(ge=MIN_COMPONENTS)] | Literal["bic"] = 25
    n_slices: Count = 5
    per_class: bool = True
    ranking: Literal["separation", "errors", "profile"] = "separation"
    cut: Literal["separating", "posterior"] = "separating"
    start: Literal["k-means", "confusion"] = "k-means"
    label_weight: NonNegative = 10.0
    prediction_weight: NonNegative = 10.0
    n_dimensions: Count = 128
    rows_per_dimension: Positive = 20.0
    rows_per_component: Positive = 20.0
    regularisation: Positive = 1e-6
    variance_prior: NonNegative = 100.0
    tolerance: NonNegative = 1e-3
    n_steps: Count = 100
    min_members: Count = 5
    min_failures: Count = 2
    min_right: Count = 2
    max_samples: Count = 200_000

    def discover(
        self,
        samples: SampleSet,
        criterion: FailureCriterion,
        *,
        seed: int,
        assistants: Assistants = NO_ASSISTANTS,
    ) -> Discovery:
        """Return the components that gather failures of a class, and a note for every class without any."""
        del assistants
        problems = class_problems(samples.dataset, samples.rows, criterion)
        use = DataUse.of(samples)
        ranked: list[tuple[float, FailureSlice]] = []
        notes: list[ClassNote] = []
        n_considered = 0
        for group in groups_of(samples, problems, self.space, per_class=self.per_class):
            fitted = self._fit(samples, group, seed=seed)
            looked_at = group if fitted is None else fitted.group
            for place, problem in enumerate(group.problems):
                places, known = looked_at.known(place)
                note = obstacle(
                    known,
                    min_failures=self.min_failures,
                    min_right=self.min_right,
                    n_without=looked_at.n_without[place],
                )
                if fitted is None:
                    best, nothing = [], "The embeddings of all samples are alike."
                else:
                    of = self._of(samples, problem, use, seed)
                    n_considered += len(fitted.components_of(place))
                    best = [] if note else self._best(of, fitted, place, places, known)
                    failures = f"The {known.n_failed} failures among {len(known.rows)} samples"
                    nothing = f"{failures} gather in no component of the mixture."
                ranked += best
                if not best:
                    notes.append(ClassNote(class_name=problem.title, note=note or nothing))
        slices = [slice_ for _, slice_ in sorted(ranked, key=lambda pair: -pair[0])]
        return Discovery(slices=tuple(slices), notes=tuple(notes), n_considered=n_considered)

    def _best(
        self,
        of: ClassSamples,
        fitted: FittedGroup,
        place: int,
        places: IntArray,
        known: ClassProblem,
    ) -> list[tuple[float, FailureSlice]]:
        """Return the components that gather failures of a class, best first, with what they are ranked by.

        Args:
            of: the class.
            fitted: the mixture.
            place: which problem of the group the class is.
            places: where its samples are in the group.
            known: the same samples.
        """
        found: list[tuple[float, int, FailureSlice]] = []
        for component in fitted.components_of(place).tolist():
            scores = fitted.odds[component, places]
            threshold: float | None = 0.0
            if self.cut == "separating":
                threshold = separating_cut(scores, known.failed, min_inside=self.min_members)
            if threshold is None:
                continue
            inside: BoolArray = scores >= threshold
            n_inside, n_failed = int(inside.sum()), int(known.failed[inside].sum())
            strength = association(known.failed, inside)
            if n_inside < self.min_members or n_failed < self.min_failures or strength <= 0:
                continue
            rank = {
                "separation": strength,
                "errors": n_failed**2 / n_inside,
                "profile": fitted.surplus(component),
            }[self.ranking]
            slice_ = self.slice_of(
                of,
                fitted.rule(component, threshold, space=self.space, encoder_id=of.encoder_id),
                strength=strength,
                n_found=n_inside,
                more={"fitted_components": fitted.mixture.n_components},
            )
            found.append((round(rank, 9), component, slice_))
        found.sort(key=lambda entry: (-entry[0], entry[1]))
        return [(rank, slice_) for rank, _, slice_ in found[: self.n_slices]]

    def _fit(self, samples: SampleSet, group: Group, *, seed: int) -> FittedGroup | None:
        draws = generator(seed, self.method, group.title)
        if len(group.rows) > self.max_samples:
            group = group.only(np.sort(draws.permutation(len(group.rows))[: self.max_samples]))
        n_dimensions = max(
            1, min(self.n_dimensions, int(len(group.rows) / self.rows_per_dimension))
        )
        reduction = fit_reduction(samples, self.space, group.rows, n_dimensions=n_dimensions)
        if reduction is None:
            return None
        reduced = reduction.apply(samples, self.space, group.rows)
        material = Material.of(
            reduced, group.labels, group.predictions, n_labels=len(group.problems)
        )
        mixture = self._mixture(material, group, draws)
        together = several_to_a_group(samples.dataset.groups[group.rows])
        folds = (
            draws.permutation(len(material)) % N_FOLDS
            if together is None
            else deal_folds(together, N_FOLDS, draws)
        )
        odds = held_out_odds(material, mixture, self, folds)
        return FittedGroup(group=group, reduction=reduction, mixture=mixture, odds=odds)

    def _mixture(self, material: Material, group: Group, draws: np.random.Generator) -> Mixture:
        most = max(MIN_COMPONENTS, int(len(material) / self.rows_per_component))
        if self.n_components != "bic":
            return self._of_size(material, group, min(self.n_components, most), draws)
        fits = [self._of_size(material, group, size, draws) for size in BIC_SIZES if size <= most]
        return min(fits, key=lambda fit: bayesian_criterion(fit, len(material)))

    def _of_size(
        self, material: Material, group: Group, size: int, draws: np.random.Generator
    ) -> Mixture:
        if self.start == "k-means":
            parts = k_means_parts(material.reduced, size, draws)
        else:
            columns = np.asarray(group.columns, dtype=np.int64)[group.labels]
            parts = confusion_parts(material.reduced, columns, group.predicted, size, draws)
        return fit_mixture(material, parts, self, n_components=size)

    def _of(
        self, samples: SampleSet, problem: ClassProblem, use: DataUse, seed: int
    ) -> ClassSamples:
        """Return a class whose embeddings are read elsewhere, together with those of others."""
        return ClassSamples(
            samples=samples,
            problem=problem,
            embeddings=np.zeros((len(problem.rows), 0), dtype=np.float32),
            space=self.space,
            obstacle="",
            found_on=use,
            seed=seed,
        )
