"""The error-aware mixture: how it is begun and fitted, and the principal components it is fitted to.

Every component has a place among the embeddings, a label profile and a prediction profile.
"""

from dataclasses import dataclass, replace

import numpy as np

from weakspot.core.arrays import AnyArray, DoubleArray, FloatArray, IntArray, unit_rows
from weakspot.core.samples import SampleSet

FIT_CHUNK_ROWS = 8_192
WARM_ROWS = 16_384
MIN_SHARE = 1e-12
PROFILE_PRIOR = 1.0
EMPTY = 1e-6


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """How a mixture is fitted.

    Args:
        label_weight: how much the label counts beside the embedding.
        prediction_weight: how much the prediction counts beside the embedding.
        regularisation: added to every variance, in units of the mean variance.
        variance_prior: every component's variances are drawn towards those of all samples as if by so many further samples.
        tolerance: fitting ends when the mean log-likelihood grows by less.
        n_steps: fitting ends after so many steps.
    """

    label_weight: float
    prediction_weight: float
    regularisation: float
    variance_prior: float
    tolerance: float
    n_steps: int


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


@dataclass(frozen=True, kw_only=True, eq=False)
class _Sums:
    features: DoubleArray
    labels: DoubleArray
    log_likelihood: float = -np.inf


@dataclass(frozen=True, kw_only=True, eq=False)
class _Overall:
    labels: DoubleArray
    predictions: DoubleArray

    @classmethod
    def of(cls, material: Material) -> "_Overall":
        counts = np.bincount(material.labels, minlength=material.n_labels)
        return cls(
            labels=counts / len(material),
            predictions=material.predictions.mean(axis=0, dtype=np.float64),
        )


def fit_mixture(
    material: Material, start: IntArray, settings: FitSettings, *, n_components: int
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
    first = _maximise(
        _sums_of_parts(material, start, n_components), settings, _Overall.of(material)
    )
    return _climb(material, first, settings)


def _climb(material: Material, found: Mixture, settings: FitSettings) -> Mixture:
    overall = _Overall.of(material)
    for step in range(1, settings.n_steps + 1):
        sums = _swept(material, found, settings)
        gain = sums.log_likelihood - found.log_likelihood
        found = replace(_maximise(sums, settings, overall), n_steps=step)
        if abs(gain) < settings.tolerance:
            break
    return found


def held_out_odds(
    material: Material, mixture: Mixture, settings: FitSettings, fold_of: IntArray
) -> DoubleArray:
    """Return the log-odds of every component [m, n] by embeddings alone, each sample judged by what the other folds say.

    Components keep their identity: posteriors come from the mixture itself, and only what they are averaged over changes. A
    component that is made of the samples which failed fits those better than unseen samples of the same kind; this takes it out.
    """
    folds = [np.flatnonzero(fold_of == fold) for fold in range(int(fold_of.max(initial=-1)) + 1)]
    parts = [_swept(material.only(places), mixture, settings) for places in folds if len(places)]
    overall = _Overall.of(material)
    odds = np.zeros((mixture.n_components, len(material)))
    for left_out, places in zip(parts, (places for places in folds if len(places)), strict=True):
        features = sum(
            (part.features for part in parts if part is not left_out),
            start=np.zeros_like(left_out.features),
        )
        labels = sum(
            (part.labels for part in parts if part is not left_out),
            start=np.zeros_like(left_out.labels),
        )
        others = _maximise(_Sums(features=features, labels=labels), settings, overall)
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


def _swept(material: Material, mixture: Mixture, settings: FitSettings) -> _Sums:
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
    return _Sums(features=sums, labels=labels, log_likelihood=likelihood / len(material))


def _sums_of_parts(material: Material, parts: IntArray, n_components: int) -> _Sums:
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
    return _Sums(features=sums, labels=labels)


def _add_by_label(labels: DoubleArray, shares: FloatArray, codes: IntArray) -> None:
    # Labels ascend, so that each of them is one run.
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    labels[:, codes[starts]] += np.add.reduceat(shares, starts, axis=1)


def _maximise(sums: _Sums, settings: FitSettings, overall: _Overall) -> Mixture:
    n_dimensions = (sums.features.shape[1] - len(overall.predictions) - 1) // 2
    counts = sums.features[:, -1:] + EMPTY
    means = sums.features[:, :n_dimensions] / counts
    variances = np.maximum(
        sums.features[:, n_dimensions : 2 * n_dimensions] / counts - np.square(means), 0.0
    )
    within = (counts * variances).sum(axis=0) / counts.sum()
    prior = settings.variance_prior
    variances = (counts * variances + prior * within) / (counts + prior) + settings.regularisation
    said = sums.features[:, 2 * n_dimensions : -1]
    return Mixture(
        means=means,
        variances=variances,
        log_weights=np.log(counts[:, 0] / counts.sum()),
        label_profiles=(sums.labels + PROFILE_PRIOR * overall.labels) / (counts + PROFILE_PRIOR),
        prediction_profiles=(said + PROFILE_PRIOR * overall.predictions) / (counts + PROFILE_PRIOR),
        log_likelihood=sums.log_likelihood,
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
