import stat
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from weakspot.core.errors import ConfigError
from weakspot.store.array_files import KEY_TYPE
from weakspot.store.embeddings import MEGABYTE, EmbeddingCache, SharedEmbeddings, WithShared

ENCODER = "embedded:tiny@1"


def _keys(*numbers):
    return np.array([f"{number:016d}".encode() for number in numbers], dtype=KEY_TYPE)


def _rows(*numbers, width=3):
    return np.array([[number] * width for number in numbers], dtype=np.float32)


@pytest.fixture
def shared(tmp_path):
    return SharedEmbeddings(folder=tmp_path / "cache" / "embeddings", most_bytes=MEGABYTE)


def _project(folder, identity=ENCODER):
    return EmbeddingCache(folder, identity=identity)


def _matrix(cache, *numbers, width=3):
    return cache.materialise(_keys(*numbers), width=width).values.tolist()


def test_shared__another_project_takes_what_one_has_computed(shared, tmp_path):
    first = _project(tmp_path / "first")
    shared.give(first, _keys(1, 2, 2, 9), _rows(1, 2, 2, np.nan))
    second = _project(tmp_path / "second")
    second.append(_keys(2), _rows(-2))
    assert shared.take(second, _keys(1, 2, 3, 1, 9), width=3) == 1
    assert _matrix(second, 1, 2) == [[1, 1, 1], [-2, -2, -2]]
    assert second.missing(_keys(1, 2, 3, 9)).tolist() == [False, False, True, True]


def test_shared__another_encoder_or_another_width_gives_nothing(shared, tmp_path):
    shared.give(_project(tmp_path / "first"), _keys(1), _rows(1))
    assert shared.take(_project(tmp_path / "a", identity="other"), _keys(1), width=3) == 0
    assert shared.take(_project(tmp_path / "b"), _keys(1), width=4) == 0
    shared.give(_project(tmp_path / "c"), _keys(5), _rows(5, width=4))
    assert shared.take(_project(tmp_path / "b"), _keys(1, 5), width=3) == 1


def test_shared__the_same_is_stored_once(shared, tmp_path):
    for _ in range(3):
        shared.give(_project(tmp_path / "first"), _keys(1, 2), _rows(1, 2))
    assert len(list(shared.folder.glob("*/shard-*.npy"))) == 1
    shared.give(_project(tmp_path / "first"), _keys(2, 3), _rows(2, 3))
    assert len(shared.keys(ENCODER)) == 3


def test_shared__folder_is_for_this_user_alone(shared, tmp_path):
    shared.give(_project(tmp_path / "first"), _keys(1), _rows(1))
    assert stat.S_IMODE(shared.folder.stat().st_mode) == 0o700


def test_shared__bounded__what_was_written_first_goes(tmp_path):
    shared = SharedEmbeddings(folder=tmp_path / "e", most_bytes=10_000)
    for number in range(8):
        keys = _keys(*range(100 * number, 100 * number + 10))
        shared.give(_project(tmp_path / "p"), keys, np.ones((10, 60), np.float32))
    total = sum(path.stat().st_size for path in shared.folder.glob("*/shard-*.npy"))
    assert total <= 10_000
    assert shared.keys(ENCODER)[-1:] == _keys(709)
    assert _keys(0)[0] not in shared.keys(ENCODER)


def test_shared__a_project_that_would_fill_half_of_it_gives_nothing(tmp_path):
    shared = SharedEmbeddings(folder=tmp_path / "e", most_bytes=10_000)
    shared.give(_project(tmp_path / "p"), _keys(*range(30)), np.ones((30, 60), np.float32))
    assert not shared.folder.exists()


def test_shared__many_writers_at_once__nothing_is_lost(shared, tmp_path):
    def give(number):
        keys = _keys(*range(20 * number, 20 * number + 20))
        shared.give(_project(tmp_path / str(number)), keys, np.full((20, 3), number, np.float32))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(give, range(16)))
    cache = _project(tmp_path / "all")
    assert shared.take(cache, _keys(*range(320)), width=3) == 320
    assert _matrix(cache, 0, 319) == [[0, 0, 0], [15, 15, 15]]


def test_shared__damaged_or_removed_files_cost_time_only(shared, tmp_path):
    shared.give(_project(tmp_path / "a"), _keys(1), _rows(1))
    (path,) = shared.folder.glob("*/shard-*.npy")
    path.write_bytes(path.read_bytes()[:-4] + b"zzzz")
    assert shared.take(_project(tmp_path / "b"), _keys(1), width=3) == 0
    shared.give(_project(tmp_path / "a"), _keys(1), _rows(1))
    known = WithShared(_project(tmp_path / "c"), shared)
    next(shared.folder.glob("*/shard-*.npy")).unlink()
    assert known.missing(_keys(1)).tolist() == [False]
    assert shared.take(_project(tmp_path / "c"), _keys(1), width=3) == 0


def test_shared__folder_that_cannot_be_used__goes_on_without(tmp_path):
    (tmp_path / "file").write_text("in the way")
    shared = SharedEmbeddings(folder=tmp_path / "file" / "embeddings")
    shared.give(_project(tmp_path / "a"), _keys(1), _rows(1))
    assert shared.take(_project(tmp_path / "b"), _keys(1), width=3) == 0
    assert len(shared.keys(ENCODER)) == 0


def test_with_shared__known_elsewhere_is_known(shared, tmp_path):
    shared.give(_project(tmp_path / "a"), _keys(1), _rows(1))
    own = _project(tmp_path / "b")
    own.append(_keys(2), _rows(2))
    both = WithShared(own, shared)
    assert both.missing(_keys(1, 2, 3)).tolist() == [False, False, True]
    assert sorted(both.keys().tolist()) == sorted(_keys(1, 2).tolist())


def test_from_environment__bound_and_off_switch(monkeypatch, tmp_path):
    monkeypatch.setenv("WEAKSPOT_CACHE", str(tmp_path))
    monkeypatch.delenv("WEAKSPOT_EMBEDDINGS_MEGABYTES")
    usual = SharedEmbeddings.from_environment()
    assert (usual.folder, usual.most_bytes) == (tmp_path / "embeddings", 2_000 * MEGABYTE)
    monkeypatch.setenv("WEAKSPOT_EMBEDDINGS_MEGABYTES", "7")
    assert SharedEmbeddings.from_environment().most_bytes == 7 * MEGABYTE
    monkeypatch.setenv("WEAKSPOT_EMBEDDINGS_MEGABYTES", "0")
    assert SharedEmbeddings.from_environment() is None
    monkeypatch.setenv("WEAKSPOT_EMBEDDINGS_MEGABYTES", "lots")
    with pytest.raises(ConfigError, match="whole number of megabytes"):
        SharedEmbeddings.from_environment()
