import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.project.nearest.brute_force import all_scores, best

from weakspot.core.errors import ConfigError, DataError
from weakspot.project import nearest_rows as shards_module
from weakspot.project.nearest_rows import (
    BestRows,
    EmbeddingShards,
    in_order,
    nearest_rows,
    rows_above,
)

DIMENSION = 24


@pytest.fixture
def rows():
    draws = np.random.default_rng(1)
    made = draws.standard_normal((600, DIMENSION)).astype(np.float32)
    made[40:60] = made[40]
    made[100:110] = made[40] * 3
    made[5], made[6], made[7] = np.nan, 0.0, np.inf
    made[8, 3] = np.nan
    made[9] *= np.float32(1e36)
    made[10] *= np.float32(1e-36)
    return made


@pytest.fixture
def shards(rows):
    return EmbeddingShards([rows[:100], rows[100:101], rows[101:101], rows[101:]])


def queries_near(rows):
    return np.stack([rows[40], rows[9], rows[10], rows[200] + rows[201], -rows[40]])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("n_wanted", [1, 7, 25, 10_000])
def test_nearest_rows__like_brute_force(rows, shards, threads, n_wanted):
    queries = queries_near(rows)
    together = nearest_rows(shards, queries, n_wanted, threads=threads)
    for query, found in zip(queries, together, strict=True):
        assert (found.rows.tolist(), found.scores.tolist()) == best(rows, query, n_wanted)
        (alone,) = nearest_rows(shards, query, n_wanted, threads=threads)
        assert (alone.rows.tolist(), alone.scores.tolist()) == (
            found.rows.tolist(),
            found.scores.tolist(),
        )


def test_nearest_rows__within(rows, shards):
    within = np.zeros(len(rows), dtype=np.bool_)
    within[[5, 6, 41, 105, 300, 599]] = True
    (found,) = nearest_rows(shards, rows[40], 4, within=within)
    assert (found.rows.tolist(), found.scores.tolist()) == best(rows, rows[40], 4, within)
    (nothing,) = nearest_rows(shards, rows[40], 4, within=np.zeros(len(rows), dtype=np.bool_))
    assert nothing.rows.tolist() == []


def test_nearest_rows__more_candidates_than_are_kept(monkeypatch, rows, shards):
    monkeypatch.setattr("weakspot.project.nearest_rows.MAX_CANDIDATES", 8)
    same = np.repeat(rows[40:41], 400, axis=0)
    (found,) = nearest_rows(EmbeddingShards([same[:150], same[150:], rows]), rows[40], 5, threads=1)
    assert found.rows.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_above__like_brute_force(rows, shards, threads):
    for query in queries_near(rows):
        scores = all_scores(rows, query)
        ranked = np.sort(scores[~np.isnan(scores)])[::-1]
        for threshold in (ranked[0], ranked[3], np.nextafter(ranked[3], 2), 0.2, -2.0, 2.0, np.inf):
            found = np.concatenate(list(rows_above(shards, query, threshold, threads=threads)))
            assert found.tolist() == np.flatnonzero(scores >= threshold).tolist()


@pytest.mark.parametrize(
    ("query", "error", "words"),
    [
        (np.ones(3), DataError, "another length"),
        (np.zeros(DIMENSION), DataError, "no direction"),
        (np.full(DIMENSION, np.nan), DataError, "no direction"),
        (np.ones((2, 2, DIMENSION)), DataError, "another length"),
    ],
)
def test_nearest_rows__bad_query(shards, query, error, words):
    with pytest.raises(error, match=words):
        nearest_rows(shards, query, 3)


def test_nearest_rows__bad_numbers(shards, rows):
    with pytest.raises(ConfigError, match="At least one row"):
        nearest_rows(shards, rows[40], 0)
    with pytest.raises(ConfigError, match="not a number"):
        rows_above(shards, rows[40], float("nan"))
    with pytest.raises(DataError, match="one truth value a row"):
        nearest_rows(shards, rows[40], 3, within=np.ones(5, dtype=np.bool_))


def test_in_order__an_error_comes_through():
    def halved(number):
        return 10 // number

    assert list(in_order(halved, (5, 2, 1), 2)) == [2, 5, 10]
    with pytest.raises(ZeroDivisionError):
        list(in_order(halved, (*[1] * 30, 0, *[1] * 30), 2))


def test_nearest_rows__memory_is_given_back(monkeypatch, tmp_path, rows):
    many = np.random.default_rng(2).standard_normal((360_000, DIMENSION), dtype=np.float32)
    many[[200, 800, 1400]] = rows[200]
    np.save(tmp_path / "rows.npy", many)
    monkeypatch.setattr(shards_module, "KEPT_MAPPED_BYTES", 0)
    monkeypatch.setattr(shards_module, "PIECE_BYTES", 1 << 19)
    shards = EmbeddingShards([np.load(tmp_path / "rows.npy", mmap_mode="r")])
    assert len(shards.pieces) > 50
    for _ in range(2):
        (found,) = nearest_rows(shards, rows[200], 3)
        assert found.rows.tolist() == [200, 800, 1400]
    assert resident_kilobytes_of("rows.npy") < many.nbytes // 1024 // 2


def resident_kilobytes_of(name):
    """Return how many kilobytes of a mapped file are in memory of this process."""
    with open("/proc/self/smaps") as stream:
        lines = iter(stream)
        return sum(
            int(next(line for line in lines if line.startswith("Rss:")).split()[1])
            for line in lines
            if name in line
        )


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(-5, 5), st.floats(0.01, 3)), min_size=1, max_size=60),
    st.integers(1, 10),
    st.randoms(use_true_random=False),
    st.integers(1, 9),
)
def test_found__the_same_in_any_order(scored, n_wanted, shuffle, most):
    true = np.array([score for score, _ in scored], dtype=np.float64)
    slack = np.array([width for _, width in scored], dtype=np.float32)
    rough = (true + slack * np.linspace(-0.9, 0.9, len(true))).astype(np.float32)
    one = BestRows(n_wanted, lambda rows: true[rows])
    one._most = max(most, n_wanted)
    places = list(range(0, len(true), 4))
    shuffle.shuffle(places)
    for start in places:
        one.offer(rough[start : start + 4], slack[start : start + 4], start)
    rows, scores = one.found()
    expected = np.lexsort((np.arange(len(true)), -true))[:n_wanted]
    assert rows.tolist() == expected.tolist()
    assert scores.tolist() == true[expected].tolist()
