import numpy as np

from weakspot.store.embeddings import MANY_WAITING, EmbeddingCache, KeyedRows


def hashed(number: int) -> str:
    return f"{number:032x}"


class Counting:
    def __init__(self):
        self.asked: list[str] = []

    def __call__(self, keys):
        self.asked += keys
        return np.array([[int(key, 16), 1.0] for key in keys], dtype=np.float32)


def test_keyed_rows__each_key_is_computed_once_in_any_order(tmp_path):
    rows, compute = KeyedRows(EmbeddingCache(tmp_path, identity="model")), Counting()
    assert rows.rows([hashed(3), hashed(1), hashed(3)], compute)[:, 0].tolist() == [3.0, 1.0, 3.0]
    assert rows.rows([hashed(1), hashed(2)], compute)[:, 0].tolist() == [1.0, 2.0]
    assert compute.asked == [hashed(3), hashed(1), hashed(2)]


def test_keyed_rows__what_was_written_is_not_computed_again(tmp_path):
    first = KeyedRows(EmbeddingCache(tmp_path, identity="model"))
    first.rows([hashed(number) for number in (0, 256, 7)], Counting())
    first.flush()
    second, compute = KeyedRows(EmbeddingCache(tmp_path, identity="model")), Counting()
    assert second.rows([hashed(256), hashed(0), hashed(8)], compute)[:, 0].tolist() == [
        256.0,
        0.0,
        8.0,
    ]
    assert compute.asked == [hashed(8)]
    assert len(second) == 4


def test_keyed_rows__many_rows_are_written_without_being_told(tmp_path):
    rows = KeyedRows(EmbeddingCache(tmp_path, identity="model"))
    rows.rows([hashed(number) for number in range(MANY_WAITING)], Counting())
    assert len(KeyedRows(EmbeddingCache(tmp_path, identity="model"))) == MANY_WAITING
