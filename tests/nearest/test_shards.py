import numpy as np
import pytest

from weakspot.core.errors import DataError
from weakspot.nearest.scan import nearest_rows
from weakspot.nearest.shards import VectorShards, rounding_slack


def test_shards__numbered_through():
    shards = VectorShards([np.zeros((3, 2), np.float32), np.zeros((0, 2), np.float32), np.ones((2, 2), np.float32)])
    assert len(shards) == 5
    assert [(piece.offset, len(piece)) for piece in shards.pieces] == [(0, 3), (3, 2)]
    assert [offset for offset, _ in shards.blocks()] == [0, 3]


def test_shards__columns_in_front_are_passed_over():
    records = np.array([[np.nan, 9, 1, 0], [7, 7, 0, 1]], dtype=np.float32)
    shards = VectorShards([records], first=2)
    assert shards.dimension == 2
    (found,) = nearest_rows(shards, np.array([0.1, 1.0]), 2)
    assert found.rows.tolist() == [1, 0]


def test_shards__other_types_and_layouts_are_converted():
    rows = np.random.default_rng(0).standard_normal((20, 6))
    wanted = nearest_rows(VectorShards([rows.astype(np.float32)]), rows[3], 5)[0]
    for array in (rows, np.asfortranarray(rows.astype(np.float32)), rows.astype(np.float32)[:, ::-1][:, ::-1]):
        assert nearest_rows(VectorShards([array]), rows[3], 5)[0].rows.tolist() == wanted.rows.tolist()


def test_shards__different_lengths():
    with pytest.raises(DataError, match=r"different lengths.*\[2, 3\]"):
        VectorShards([np.zeros((1, 2), np.float32), np.zeros((1, 3), np.float32)])


def test_rounding_slack__covers_the_worst_order_of_sums():
    draws = np.random.default_rng(2)
    for dimension in (2, 64, 1000):
        rows = (draws.standard_normal((200, dimension)) * 10.0 ** draws.uniform(-6, 6, dimension)).astype(np.float32)
        query = draws.standard_normal(dimension).astype(np.float32)
        query /= np.linalg.norm(query)
        narrow = np.cumsum(rows * query, axis=1, dtype=np.float32)[:, -1]
        lengths = np.sqrt(np.cumsum(rows * rows, axis=1, dtype=np.float32)[:, -1])
        wide = (rows.astype(np.float64) @ query) / np.linalg.norm(rows.astype(np.float64), axis=1)
        assert np.abs(narrow / lengths - wide).max() <= rounding_slack(dimension)
