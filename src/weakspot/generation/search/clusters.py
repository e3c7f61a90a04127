"""Groups failures that look alike, so that each group can be captioned as one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import DoubleArray, FloatArray, IntArray

FEWEST_TO_SPLIT = 6
SMALLEST = 2
FEWEST_PARTS = 2
CLEAR_SILHOUETTE = 0.1


@dataclass(frozen=True, kw_only=True)
class FailureCluster:
    """Failures that were taken for the same label and look alike.

    Args:
        predicted: the label that they were taken for; empty when it holds failures of any label.
        keys: the images, in the order in which they were generated.
    """

    predicted: str
    keys: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.keys)


def failure_clusters(
    keys: Sequence[str], predicted: Sequence[str], embeddings: FloatArray, *, most_clusters: int
) -> tuple[FailureCluster, ...]:
    """Split failures by predicted label, and each label's failures by how they look; largest first.

    The number of clusters of a label is the one that separates them best (silhouette by cosine), and one where nothing separates
    them clearly. A label whose failures are divided is given as a whole too, and so are all failures together when there are
    several labels: a wrong division must not hide what all of them share.

    Args:
        keys: the failures.
        predicted: what each was taken for.
        embeddings: unit vectors [n, d] of them.
        most_clusters: most clusters of one label.
    """
    by_label: dict[str, list[int]] = {}
    for place, label in enumerate(predicted):
        by_label.setdefault(label, []).append(place)
    groups: list[tuple[str, list[int]]] = []
    for label, places in by_label.items():
        groups.append((label, places))
        groups += [
            (label, part)
            for part in _parts(places, embeddings[places], most_clusters)
            if len(part) >= SMALLEST
        ]
    if len(by_label) > 1:
        groups.append(("", list(range(len(keys)))))
    found = {
        tuple(keys[place] for place in sorted(places)): label for label, places in reversed(groups)
    }
    clusters = [FailureCluster(predicted=label, keys=members) for members, label in found.items()]
    return tuple(
        sorted(clusters, key=lambda cluster: (-len(cluster), cluster.predicted, cluster.keys))
    )


def _parts(places: Sequence[int], embeddings: FloatArray, most_clusters: int) -> list[list[int]]:
    if len(places) < FEWEST_TO_SPLIT or most_clusters < FEWEST_PARTS:
        return []
    numbers = _best_division(embeddings, most_clusters)
    return [
        [place for place, number in zip(places, numbers, strict=True) if number == one]
        for one in range(numbers.max() + 1)
    ]


def _best_division(embeddings: FloatArray, most_clusters: int) -> IntArray:
    """Return the cluster of every embedding [n] in the division with the clearest gaps."""
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.metrics import silhouette_score

    distances = _cosine_distances(embeddings)
    best, clearest = np.zeros(len(embeddings), dtype=np.int64), CLEAR_SILHOUETTE
    for n_clusters in range(FEWEST_PARTS, min(most_clusters, len(embeddings) // SMALLEST) + 1):
        division = AgglomerativeClustering(
            n_clusters=n_clusters, metric="precomputed", linkage="average"
        ).fit_predict(distances)
        if np.count_nonzero(np.bincount(division) >= SMALLEST) < FEWEST_PARTS:
            # Only single images were split off.
            continue
        clearness = float(silhouette_score(distances, division, metric="precomputed"))
        if clearness > clearest:
            best, clearest = np.asarray(division, dtype=np.int64), clearness
    return best


def _cosine_distances(embeddings: FloatArray) -> DoubleArray:
    products = embeddings.astype(np.float64) @ embeddings.astype(np.float64).T
    distances = np.clip(1.0 - (products + products.T) / 2, 0.0, 2.0)
    np.fill_diagonal(distances, 0.0)
    return np.asarray(distances)
