"""The error-aware mixture against scikit-learn's PCA and GaussianMixture, which see neither labels nor predictions.

    python benchmarks/mixture.py --rows 100000

Both sides get the same unit vectors (32-bit), 128 principal components, 25 components with diagonal covariance, k-means start, and
the same stopping rule (mean log-likelihood grows by less than 1e-3, at most 100 steps). The whole of `discover` is timed on our
side: reading, reduction, fitting with labels and predictions, held-out odds, cuts and slices. The likelihood is compared on a
fit without labels and predictions, in the same coordinates.
"""

import argparse
import json
import time
import warnings

import numpy as np
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

from weakspot.core.arrays import unit_rows
from weakspot.core.dataset import dataset_from_columns
from weakspot.core.failures import FailureCriterion
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.discover.mixture import (
    Material,
    MixtureDiscoverer,
    fit_mixture,
    fit_reduction,
    k_means_parts,
)

N_CLASSES, N_KINDS, N_COMPONENTS, N_DIMENSIONS = 10, 6, 25, 128
WANTED_SPEED, WANTED_LIKELIHOOD = 2.0, -0.1


def world(n_rows, dimension):
    """Return samples of ten classes with six kinds each, one of which is usually taken for another class."""
    draws = np.random.default_rng(0)
    spectrum = (1.0 / np.sqrt(1.0 + np.arange(dimension))).astype(np.float32)
    centres = draws.standard_normal((N_CLASSES * N_KINDS, dimension), dtype=np.float32) * spectrum
    kinds = draws.integers(N_CLASSES * N_KINDS, size=n_rows)
    noise = draws.standard_normal((n_rows, dimension), dtype=np.float32)
    embeddings = unit_rows(0.5 + centres[kinds] + 1.2 * noise * spectrum)
    labels = kinds % N_CLASSES
    scores = draws.standard_normal((n_rows, N_CLASSES), dtype=np.float32)
    is_hard = kinds < N_CLASSES
    scores[np.arange(n_rows), np.where(is_hard, (labels + 1) % N_CLASSES, labels)] += 4.0
    probabilities = np.exp(scores)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    dataset = dataset_from_columns(
        class_names=[f"class {code}" for code in range(N_CLASSES)],
        labels=labels,
        predictions=probabilities.argmax(axis=1),
        probabilities=probabilities,
    )
    space = EmbeddingSpace(encoder_id="benchmark", embeddings=embeddings)
    return SampleSet(
        dataset=dataset, rows=np.arange(n_rows), spaces={"clip": space}, name="benchmark"
    )


def timed(function, repeats):
    """Return the shortest time, the least processor time and the last result."""
    times = []
    for _ in range(repeats):
        started, processor = time.perf_counter(), time.process_time()
        result = function()
        times.append((time.perf_counter() - started, time.process_time() - processor))
    return min(wall for wall, _ in times), min(used for _, used in times), result


def theirs(samples):
    embeddings = samples.embeddings("clip")
    reduced = PCA(N_DIMENSIONS, random_state=0).fit_transform(embeddings)
    mixture = GaussianMixture(N_COMPONENTS, covariance_type="diag", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mixture.fit(reduced)
    return float(mixture.score(reduced)), mixture.n_iter_


def ours(samples, *, per_class=False):
    """Find slices; every setting that decides the amount of work is the peer's (by default each class has its own mixture)."""
    method = MixtureDiscoverer(
        n_components=N_COMPONENTS, n_dimensions=N_DIMENSIONS, per_class=per_class
    )
    return method.discover(samples, FailureCriterion(), seed=0)


def embeddings_only(samples):
    """Return likelihood and steps of a fit without labels and predictions, in the coordinates that the peer uses."""
    reduction = fit_reduction(samples, "clip", samples.rows, n_dimensions=N_DIMENSIONS)
    reduced = reduction.apply(samples, "clip", samples.rows)
    codes = np.zeros(len(reduced), dtype=np.int64)
    material = Material.of(reduced, codes, np.ones((len(reduced), 1), dtype=np.float32), n_labels=1)
    settings = MixtureDiscoverer(
        label_weight=0.0,
        prediction_weight=0.0,
        regularisation=1e-6,
        variance_prior=0.0,
        tolerance=1e-3,
        n_steps=100,
    )
    parts = k_means_parts(material.reduced, N_COMPONENTS, np.random.default_rng(0))
    found = fit_mixture(material, parts, settings, n_components=N_COMPONENTS)
    scale = float(np.linalg.norm(reduction.projection[0]))
    return found.log_likelihood + len(reduction.projection) * np.log(scale), found.n_steps


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=2)
    chosen = parser.parse_args()
    ours(world(2_000, 64))
    samples = world(chosen.rows, chosen.dimension)
    our_seconds, our_processor, discovery = timed(lambda: ours(samples), chosen.repeats)
    default_seconds, _, _ = timed(lambda: ours(samples, per_class=True), chosen.repeats)
    plain_seconds, _, (our_likelihood, our_steps) = timed(
        lambda: embeddings_only(samples), chosen.repeats
    )
    their_seconds, their_processor, (their_likelihood, their_steps) = timed(
        lambda: theirs(samples), 1
    )
    figures = {
        "rows": chosen.rows,
        "dimension": chosen.dimension,
        "scikit_learn_seconds": round(their_seconds, 2),
        "our_seconds_with_labels_and_predictions": round(our_seconds, 2),
        "our_seconds_a_mixture_per_class": round(default_seconds, 2),
        "our_seconds_embeddings_only": round(plain_seconds, 2),
        "ratio": round(their_seconds / our_seconds, 2),
        "processor_time_ratio": round(their_processor / our_processor, 2),
        "steps": {"ours_embeddings_only": our_steps, "scikit_learn": their_steps},
        "seconds_per_step": {
            "ours": round(plain_seconds / our_steps, 3),
            "scikit_learn": round(their_seconds / their_steps, 3),
        },
        "log_likelihood": {
            "ours": round(our_likelihood, 3),
            "scikit_learn": round(their_likelihood, 3),
        },
        "n_slices": len(discovery.slices),
    }
    print(json.dumps(figures))
    print(
        f"speed: {figures['ratio']}x scikit-learn's PCA and GaussianMixture, wanted at least {WANTED_SPEED}x"
    )
    print(
        f"likelihood: ours minus theirs {our_likelihood - their_likelihood:+.3f} a sample, wanted at least {WANTED_LIKELIHOOD}"
    )


if __name__ == "__main__":
    main()
