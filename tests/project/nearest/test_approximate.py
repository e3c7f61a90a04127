import builtins

import numpy as np
import pytest

from weakspot.core.errors import MissingExtraError
from weakspot.project.nearest_rows import (
    USEARCH_SUFFIX,
    EmbeddingShards,
    Nearest,
    approximate,
    nearest_rows,
    recall,
)


@pytest.fixture
def files(tmp_path):
    draws = np.random.default_rng(4)
    centres = draws.standard_normal((20, 16))
    rows = (centres[np.arange(1500) % 20] + draws.standard_normal((1500, 16))).astype(np.float32)
    rows[3], rows[4] = np.nan, 0.0
    rows[5] *= np.float32(1e30)
    np.save(tmp_path / "a.npy", rows[:1000])
    np.save(tmp_path / "b.npy", rows[1000:])
    return tmp_path


def opened(files):
    return EmbeddingShards([np.load(files / f"{name}.npy", mmap_mode="r") for name in ("a", "b")])


def test_approximate__finds_nearly_all_with_exact_scores(files):
    shards = opened(files)
    queries = np.random.default_rng(5).standard_normal((20, 16))
    exact, found = nearest_rows(shards, queries, 10), approximate(shards).nearest_rows(queries, 10)
    shares = [recall(one, other) for one, other in zip(found, exact, strict=True)]
    assert np.mean(shares) > 0.95
    for one, other in zip(found, exact, strict=True):
        known = dict(zip(other.rows.tolist(), other.scores.tolist(), strict=True))
        assert all(
            known.get(row, score) == score
            for row, score in zip(one.rows.tolist(), one.scores.tolist(), strict=True)
        )
        assert 3 not in one.rows


def test_approximate__within_a_few_rows(files):
    shards = opened(files)
    within = np.zeros(len(shards), dtype=np.bool_)
    within[[3, 700, 1200, 1400]] = True
    (found,) = approximate(shards).nearest_rows(np.ones(16), 3, within=within)
    assert sorted(found.rows.tolist()) == [700, 1200, 1400]


def test_approximate__same_index_every_time_and_built_once(files):
    approximate(opened(files))
    path = files / f"a.npy{USEARCH_SUFFIX}"
    first, number = path.read_bytes(), path.stat().st_ino
    approximate(opened(files))
    assert path.stat().st_ino == number
    path.unlink()
    approximate(opened(files))
    assert path.read_bytes() == first


@pytest.mark.parametrize("harm", ["cut", "embeddings"])
def test_approximate__built_anew_when_damaged_or_old(files, harm):
    approximate(opened(files))
    path = files / f"a.npy{USEARCH_SUFFIX}"
    if harm == "cut":
        path.write_bytes(path.read_bytes()[:-100])
    else:
        np.save(files / "b.npy", -np.load(files / "b.npy"))
    (found,) = approximate(opened(files)).nearest_rows(np.ones(16), 5)
    (exact,) = nearest_rows(opened(files), np.ones(16), 5)
    assert found.rows.tolist() == exact.rows.tolist()


def test_approximate__without_the_library(files, monkeypatch):
    real = builtins.__import__

    def without(name, *arguments, **options):
        if name.startswith("usearch"):
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"weakspot\[ann\]"):
        approximate(opened(files))


def test_recall__equals_stand_for_each_other():
    exact = Nearest(rows=np.array([1, 2, 3]), scores=np.array([0.9, 0.5, 0.5]))
    assert recall(Nearest(rows=np.array([1, 2, 7]), scores=np.array([0.9, 0.5, 0.5])), exact) == 1.0
    assert recall(
        Nearest(rows=np.array([1, 8]), scores=np.array([0.9, 0.1])), exact
    ) == pytest.approx(1 / 3)
    assert recall(Nearest(rows=np.empty(0, int), scores=np.empty(0)), exact) == 0.0
