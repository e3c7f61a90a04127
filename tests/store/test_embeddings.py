import os

import numpy as np
import pyarrow as pa
import pytest

from weakspot.core.errors import StoreError
from weakspot.store.array_files import packed_hashes
from weakspot.store.embeddings import MANY_SHARDS, EmbeddingCache


def keys_of(*numbers):
    return packed_hashes(pa.array([f"{number:032x}" for number in numbers]))


def rows_of(*numbers):
    return np.array([[number, number + 0.5] for number in numbers], dtype=np.float32)


@pytest.fixture
def cache(tmp_path):
    return EmbeddingCache(tmp_path / "embeddings", identity="toy@1")


def again(cache):
    return EmbeddingCache(cache.folder, identity=cache.identity)


def test_append__other_width_under_same_id(cache):
    cache.append(keys_of(1), rows_of(1))
    with pytest.raises(
        StoreError, match=r"'toy@1' now gives 3 numbers a sample, but gave \[2\] before"
    ):
        again(cache).append(keys_of(2), np.zeros((1, 3), dtype=np.float32))


def test_materialise__interrupted_while_noting_what_was_checked__matrix_is_made_again(
    cache, monkeypatch
):
    cache.append(keys_of(3, 1), rows_of(3, 1))

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("weakspot.store.embeddings.write_checked", interrupt)
    with pytest.raises(KeyboardInterrupt):
        cache.materialise(keys_of(1, 3), width=2)
    assert again(cache).matrix(keys_of(1, 3)) is None


def test_materialise__order_repeats_and_gaps(cache):
    cache.append(keys_of(3, 1), rows_of(3, 1))
    cache.append(keys_of(7), rows_of(7))
    made = cache.materialise(keys_of(7, 1, 9, 1), width=2)
    assert made.n_missing == 1
    np.testing.assert_array_equal(made.values, [[7, 7.5], [1, 1.5], [np.nan, np.nan], [1, 1.5]])
    assert isinstance(made.values, np.memmap)


def test_materialise__columns_and_names_are_kept_apart(cache):
    cache.append(keys_of(1, 2), rows_of(1, 2))
    turned = cache.materialise(keys_of(1, 2), width=2, name="turned", columns=np.array([1, 0]))
    plain = cache.materialise(keys_of(1, 2), width=2)
    assert turned.values.tolist() == [[1.5, 1.0], [2.5, 2.0]]
    assert plain.values.tolist() == [[1.0, 1.5], [2.0, 2.5]]
    assert again(cache).matrix(keys_of(1, 2), name="turned", columns=np.array([1, 0])).values[
        0
    ].tolist() == [1.5, 1.0]
    assert again(cache).matrix(keys_of(1, 2), name="turned", columns=np.array([0, 1])) is None


def test_matrix__only_for_the_same_samples(cache):
    cache.append(keys_of(1, 2), rows_of(1, 2))
    assert cache.matrix(keys_of(1, 2)) is None
    cache.materialise(keys_of(1, 2), width=2)
    assert again(cache).matrix(keys_of(1, 2)).values.tolist() == [[1.0, 1.5], [2.0, 2.5]]
    assert again(cache).matrix(keys_of(2, 1)) is None
    cache.materialise(keys_of(2, 1), width=2)
    assert len(list(cache.folder.glob("matrix-*.npy"))) == 1


def test_matrix__cut_short_is_not_used(cache):
    cache.append(keys_of(1, 2), rows_of(1, 2))
    cache.materialise(keys_of(1, 2), width=2)
    path = next(cache.folder.glob("matrix-*.npy"))
    path.write_bytes(path.read_bytes()[:-4])
    assert again(cache).matrix(keys_of(1, 2)) is None


def test_compact__rows_stored_twice_by_a_kill_are_stored_once_after(cache):
    for number in range(MANY_SHARDS):
        cache.append(keys_of(number), rows_of(number))
    copies = {path.name: path.read_bytes() for path in cache.folder.glob("shard-*.npy")}
    cache.compact()
    for name, content in copies.items():
        (cache.folder / name).write_bytes(content)
    reopened = again(cache)
    reopened.compact()
    stored = np.concatenate([np.load(path)["key"] for path in cache.folder.glob("shard-*.npy")])
    assert len(stored) == MANY_SHARDS
    assert reopened.missing(keys_of(*range(MANY_SHARDS))).sum() == 0


def test_materialise__more_samples_at_the_end_are_appended(cache):
    cache.append(keys_of(*range(9)), rows_of(*range(9)))
    first = cache.materialise(keys_of(*range(5), 77), width=2)
    (before,) = cache.folder.glob("matrix-*.npy")
    number = before.stat().st_ino
    grown = again(cache).materialise(keys_of(*range(5), 77, 8, 6), width=2)
    (after,) = cache.folder.glob("matrix-*.npy")
    assert after.stat().st_ino == number
    assert after.name != before.name
    np.testing.assert_array_equal(
        grown.values, np.concatenate([rows_of(*range(5)), [[np.nan, np.nan]], rows_of(8, 6)])
    )
    np.testing.assert_array_equal(first.values[:5], rows_of(*range(5)))
    assert again(cache).matrix(keys_of(*range(5), 77, 8, 6)).n_missing == 1


@pytest.mark.parametrize("wanted", [[1, 0, 2, 3], [0, 2], [0], [0, 2, 1, 9]])
def test_materialise__other_samples_are_written_anew(cache, wanted):
    cache.append(keys_of(*range(4)), rows_of(*range(4)))
    cache.materialise(keys_of(0, 1), width=2)
    made = cache.materialise(keys_of(*wanted), width=2)
    known = [number for number in wanted if number < 4]
    assert made.values[: len(known)].tolist() == rows_of(*known).tolist()
    assert made.n_missing == len(wanted) - len(known)
    assert len(list(cache.folder.glob("matrix-*.npy"))) == 1


def test_materialise__row_that_was_missing_is_not_left_missing(cache):
    cache.append(keys_of(1), rows_of(1))
    cache.materialise(keys_of(1, 2), width=2)
    cache.append(keys_of(2, 3), rows_of(2, 3))
    assert cache.materialise(keys_of(1, 2, 3), width=2).values.tolist() == rows_of(1, 2, 3).tolist()


def test_materialise__copies_beside_an_old_matrix_go_with_it(cache):
    cache.append(keys_of(1, 2), rows_of(1, 2))
    cache.materialise(keys_of(1, 2), width=2)
    path = next(cache.folder.glob("matrix-*.npy"))
    path.with_name(path.name + ".int8").write_bytes(b"copy")
    cache.materialise(keys_of(2), width=2)
    assert not list(cache.folder.glob("*.int8"))


def test_shards__not_read_again_unless_changed(cache):
    cache.append(keys_of(1, 2), rows_of(1, 2))
    cache.append(keys_of(3), rows_of(3))
    cache.materialise(keys_of(1), width=2)
    first, second = sorted(cache.folder.glob("shard-*.npy"))
    facts = first.stat()
    content = bytearray(first.read_bytes())
    content[-3] ^= 255
    first.write_bytes(bytes(content))
    os.utime(first, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert again(cache).missing(keys_of(1, 2, 3)).tolist() == [False, False, False]
    os.utime(first, ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))
    assert again(cache).missing(keys_of(1, 2, 3)).tolist() == [True, True, False]
    assert second.exists()


def test_shards__rows_behind_their_keys(cache):
    cache.append(keys_of(1, 2), rows_of(1, 2))
    (shard,) = again(cache).shards()
    assert shard.numbers()[:, 4:].tolist() == rows_of(1, 2).tolist()
    assert isinstance(shard.numbers(), np.memmap)
