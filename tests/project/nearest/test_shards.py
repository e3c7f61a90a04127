import os

import numpy as np
import pytest

from weakspot.core.errors import DataError, StoreError
from weakspot.project.nearest_rows import (
    EmbeddingShards,
    mark_of,
    nearest_rows,
    replacing,
    rounding_slack,
)


def test_shards__columns_in_front_are_passed_over():
    records = np.array([[np.nan, 9, 1, 0], [7, 7, 0, 1]], dtype=np.float32)
    shards = EmbeddingShards([records], first=2)
    assert shards.dimension == 2
    (found,) = nearest_rows(shards, np.array([0.1, 1.0]), 2)
    assert found.rows.tolist() == [1, 0]


def test_shards__other_types_and_layouts_are_converted():
    rows = np.random.default_rng(0).standard_normal((20, 6))
    wanted = nearest_rows(EmbeddingShards([rows.astype(np.float32)]), rows[3], 5)[0]
    for array in (
        rows,
        np.asfortranarray(rows.astype(np.float32)),
        rows.astype(np.float32)[:, ::-1][:, ::-1],
    ):
        assert (
            nearest_rows(EmbeddingShards([array]), rows[3], 5)[0].rows.tolist()
            == wanted.rows.tolist()
        )


def test_shards__different_lengths():
    with pytest.raises(DataError, match=r"different lengths.*\[2, 3\]"):
        EmbeddingShards([np.zeros((1, 2), np.float32), np.zeros((1, 3), np.float32)])


def test_rounding_slack__covers_the_worst_order_of_sums():
    draws = np.random.default_rng(2)
    for dimension in (2, 64, 1000):
        rows = (
            draws.standard_normal((200, dimension)) * 10.0 ** draws.uniform(-6, 6, dimension)
        ).astype(np.float32)
        query = draws.standard_normal(dimension).astype(np.float32)
        query /= np.linalg.norm(query)
        narrow = np.cumsum(rows * query, axis=1, dtype=np.float32)[:, -1]
        lengths = np.sqrt(np.cumsum(rows * rows, axis=1, dtype=np.float32)[:, -1])
        wide = (rows.astype(np.float64) @ query) / np.linalg.norm(rows.astype(np.float64), axis=1)
        assert np.abs(narrow / lengths - wide).max() <= rounding_slack(dimension)


def test_mark_of__another_mark_for_another_content_of_the_same_size_and_time(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"a" * 200_000)
    os.utime(path, ns=(5, 5))
    first = mark_of(path)
    path.write_bytes(b"b" * 200_000)
    os.utime(path, ns=(5, 5))
    assert mark_of(path) != first
    path.write_bytes(b"")
    assert mark_of(path).startswith("0-")


def test_replacing__all_or_nothing(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(TypeError), replacing(path) as temporary:
        temporary.write_bytes(b"half", "another argument")
    assert path.read_bytes() == b"old"
    with replacing(path) as temporary:
        temporary.write_bytes(b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]
    with (
        pytest.raises(StoreError, match="cannot be written"),
        replacing(tmp_path / "none" / "file") as temporary,
    ):
        temporary.write_bytes(b"new")
