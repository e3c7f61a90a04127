"""The error-aware mixture: every component has a place among the embeddings, a label profile and a prediction profile.

Expectation and maximisation are one sweep of 32-bit matrix products over pieces that fit the processor's cache: the logarithm
of a component's likelihood is linear in a sample's coordinates, their squares and its predicted probabilities.
Letters: *m* components, *k* reduced dimensions, *l* labels, *q* prediction columns.
"""

from dataclasses import dataclass, replace

import numpy as np

from weakspot.core.arrays import AnyArray, DoubleArray, FloatArray, IntArray

CHUNK_ROWS = 8_192
WARM_ROWS = 16_384
SMALLEST_SHARE = 1e-12
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
    for start in range(0, len(material), CHUNK_ROWS):
        block, codes = (
            material.features[start : start + CHUNK_ROWS],
            material.labels[start : start + CHUNK_ROWS],
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
    for start in range(0, len(material), CHUNK_ROWS):
        block, codes = (
            material.features[start : start + CHUNK_ROWS],
            material.labels[start : start + CHUNK_ROWS],
        )
        shares = (parts[None, start : start + CHUNK_ROWS] == numbers).astype(np.float32)
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
    return np.asarray(np.log(np.maximum(shares, SMALLEST_SHARE)), dtype=np.float64)
