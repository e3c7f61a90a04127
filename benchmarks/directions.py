"""Time of failure directions against scikit-learn's grid of SVCs, at equal accuracy on held-out samples.

    python benchmarks/directions.py [--sklearn-classes 40] [--large-sklearn-classes 1]

Both sides get the same standardised unit vectors, choose among 7 costs by 2 folds on balanced accuracy, and fit once more.
scikit-learn is timed on some of the classes and extrapolated to all of them, as the whole grid takes minutes.
"""

import argparse
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC

from weakspot.discover.directions import DirectionsDiscoverer, source_of
from weakspot.discover.directions_kernels import chosen_model, svm_path

COSTS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
PLAN = DirectionsDiscoverer(costs=COSTS, cost_slack=0.0).plan
N_DIMENSIONS = 512
MAX_LOSS = 0.005


def make_classes(n_classes, n_rows, *, gap, seed=0):
    """Return (embeddings, failed, held-out embeddings, held-out failed) of classes in which a mark makes most samples fail."""
    draws = np.random.default_rng(seed)
    classes = []
    for _ in range(n_classes):
        has_mark = draws.random(2 * n_rows) < 0.3
        mark = draws.standard_normal(N_DIMENSIONS, dtype=np.float32)
        embeddings = draws.standard_normal((2 * n_rows, N_DIMENSIONS), dtype=np.float32)
        embeddings += has_mark[:, None] * mark * np.float32(gap / np.linalg.norm(mark))
        failed = draws.random(2 * n_rows) < np.where(has_mark, 0.85, 0.1)
        failed[[0, 1, n_rows, n_rows + 1]], failed[[2, 3, n_rows + 2, n_rows + 3]] = True, False
        embeddings = (embeddings - embeddings[:n_rows].mean(axis=0)) / embeddings[:n_rows].std(
            axis=0
        )
        embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
        classes.append(
            (
                embeddings[:n_rows].copy(),
                failed[:n_rows].copy(),
                embeddings[n_rows:],
                failed[n_rows:],
            )
        )
    return classes


def fit_own(item):
    place, (embeddings, failed, *_) = item
    order = np.random.default_rng(place).permutation(len(failed))[None]
    chosen, signed, biases = chosen_model(source_of(embeddings), failed, order, PLAN)
    return COSTS[chosen], signed[0].astype(np.float32) @ embeddings, float(biases[0])


def fit_sklearn(embeddings, failed, place):
    folds = StratifiedKFold(2, shuffle=True, random_state=place)
    best, best_cost = -1.0, COSTS[0]
    for cost in COSTS:
        classifier = SVC(kernel="linear", class_weight="balanced", C=cost)
        accuracy = cross_val_score(
            classifier, embeddings, failed, cv=folds, scoring="balanced_accuracy"
        ).mean()
        if accuracy > best:
            best, best_cost = accuracy, cost
    return SVC(kernel="linear", class_weight="balanced", C=best_cost).fit(embeddings, failed)


def time_own(classes, n_repeats):
    best, models = float("inf"), []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in range(n_repeats):
            started = time.perf_counter()
            models = list(pool.map(fit_own, enumerate(classes)))
            best = min(best, time.perf_counter() - started)
    return best, models


def measure(name, classes, n_sklearn, wanted, *, n_repeats):
    fit_own((0, classes[0]))
    own_seconds, models = time_own(classes, n_repeats)
    started = time.perf_counter()
    others = [fit_sklearn(*classes[place][:2], place) for place in range(n_sklearn)]
    sklearn_seconds = (time.perf_counter() - started) / n_sklearn * len(classes)
    own = [
        balanced_accuracy_score(truth, held @ way + bias >= 0)
        for (_, way, bias), (_, _, held, truth) in zip(models, classes, strict=True)
    ]
    theirs = [
        balanced_accuracy_score(truth, other.predict(held))
        for other, (_, _, held, truth) in zip(others, classes, strict=False)
    ]
    found = {
        "benchmark": name,
        "seconds": round(own_seconds, 4),
        "sklearn_seconds": round(sklearn_seconds, 1),
        "sklearn_classes_timed": n_sklearn,
        "ratio": round(sklearn_seconds / own_seconds, 1),
        "wanted_ratio": wanted,
        "held_out_accuracy": round(float(np.mean(own[:n_sklearn])), 4),
        "sklearn_held_out_accuracy": round(float(np.mean(theirs)), 4),
        "largest_score_difference_at_same_cost": round(score_difference(*classes[0][:3]), 5),
    }
    found["ok"] = bool(
        found["ratio"] >= wanted and np.mean(own[:n_sklearn]) > np.mean(theirs) - MAX_LOSS
    )
    print(json.dumps(found))
    print(
        f"{name}: {found['seconds']} s, scikit-learn {found['sklearn_seconds']} s (from {n_sklearn} of {len(classes)} classes), "
        f"ratio {found['ratio']} (wanted: at least {wanted}); held-out balanced accuracy {found['held_out_accuracy']} "
        f"against {found['sklearn_held_out_accuracy']} (wanted: lower by less than {MAX_LOSS})"
    )
    return found["ok"]


def score_difference(embeddings, failed, held_out):
    """Return the largest difference of held-out scores when both solve the same problem, relative to the largest score."""
    signed, biases = svm_path(source_of(embeddings), failed, np.array([1.0]), 1e-5)
    direction, bias = signed[0] @ np.asarray(embeddings, dtype=np.float64), float(biases[0])
    other = (
        SVC(kernel="linear", class_weight="balanced", C=1.0, tol=1e-5)
        .fit(embeddings, failed)
        .decision_function(held_out)
    )
    return float(np.abs(held_out @ direction + bias - other).max() / np.abs(other).max())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sklearn-classes", type=int, default=40)
    parser.add_argument("--large-sklearn-classes", type=int, default=1)
    given = parser.parse_args()
    small = measure(
        "1000 classes x 50",
        make_classes(1000, 50, gap=8.0),
        given.sklearn_classes,
        300,
        n_repeats=5,
    )
    large = measure(
        "10 classes x 5000",
        make_classes(10, 5_000, gap=4.0),
        given.large_sklearn_classes,
        40,
        n_repeats=2,
    )
    return 0 if small and large else 1


if __name__ == "__main__":
    raise SystemExit(main())
