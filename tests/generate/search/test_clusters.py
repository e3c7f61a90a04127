"""Clusters of failures."""

import numpy as np

from weakspot.core.arrays import FloatArray, generator, unit_rows
from weakspot.generate.search.finding import failure_clusters


def _around(centre: int, n: int, name: str) -> FloatArray:
    noise = generator(0, "clusters", name).standard_normal((n, 8)) * 0.05
    return unit_rows(np.eye(8)[centre] + noise)


def test_failure_clusters__splits_by_label_and_by_looks_and_keeps_the_whole() -> None:
    embeddings = np.concatenate([_around(0, 6, "a"), _around(1, 4, "b"), _around(2, 3, "c")])
    keys = [f"k{place}" for place in range(13)]
    labels = ["bee"] * 10 + ["wasp"] * 3
    clusters = failure_clusters(keys, labels, embeddings, most_clusters=4)
    assert [(label, len(members)) for label, members in clusters] == [
        ("", 13), ("bee", 10), ("bee", 6), ("bee", 4), ("wasp", 3)
    ]  # fmt: skip
    assert clusters[3][1] == tuple(keys[6:10])


def test_failure_clusters__one_cluster_where_nothing_separates() -> None:
    embeddings = unit_rows(generator(0, "clusters", "alike").standard_normal((12, 64)) * 0.02 + 1.0)
    clusters = failure_clusters(
        [str(place) for place in range(12)], ["bee"] * 12, embeddings, most_clusters=4
    )
    assert [len(members) for _, members in clusters] == [12]


def test_failure_clusters__respects_the_most_and_small_inputs() -> None:
    embeddings = np.concatenate([_around(place, 4, str(place)) for place in range(5)])
    keys = [f"{place:02}" for place in range(20)]
    clusters = failure_clusters(keys, ["bee"] * 20, embeddings, most_clusters=3)
    assert len(clusters) <= 4
    assert failure_clusters([], [], np.zeros((0, 8), dtype=np.float32), most_clusters=3) == ()
    assert failure_clusters(["a"], ["bee"], embeddings[:1], most_clusters=3)[0][1] == ("a",)


def test_failure_clusters__the_order_of_drawing_stays_inside_a_cluster() -> None:
    embeddings = np.concatenate([_around(place % 2, 1, str(place)) for place in range(12)])
    keys = [f"k{place:02}" for place in range(12)]
    clusters = failure_clusters(keys, ["bee"] * 12, embeddings, most_clusters=2)
    assert [members for _, members in clusters[1:]] == [tuple(keys[::2]), tuple(keys[1::2])]
