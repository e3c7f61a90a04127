import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.project.nearest.brute_force import all_scores, best

from weakspot.core.errors import DataError, StoreError
from weakspot.project.nearest_kernels import quantise
from weakspot.project.nearest_rows import (
    INT8_SUFFIX,
    EmbeddingShards,
    QuantisedShards,
    nearest_rows,
    quantise_shards,
    rows_above,
)

NUMBERS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 3e38, -3e38, 1e-45, 1e-38, 0.1]),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.floats(-1, 1, width=32),
)


def in_memory(rows):
    codes, factors, slack = (
        np.empty(rows.shape, np.int8),
        np.empty(len(rows), np.float32),
        np.empty(len(rows), np.float32),
    )
    quantise(rows, 0, codes, factors, slack)
    return codes, factors, np.nextafter(slack, np.float32(np.inf))


@st.composite
def tables(draw):
    dimension = draw(st.integers(1, 6))
    n_rows = draw(st.integers(1, 30))
    rows = draw(hnp.arrays(np.float32, (n_rows, dimension), elements=NUMBERS))
    copies = draw(st.lists(st.integers(0, n_rows - 1), max_size=10))
    rows = np.concatenate([rows, rows[copies]])
    for place in draw(st.lists(st.integers(0, n_rows - 1), max_size=2)):
        rows[place] = np.nan
    query = draw(
        hnp.arrays(np.float32, dimension, elements=NUMBERS).filter(
            lambda one: bool((one != 0).any())
        )
    )
    return rows, query


@settings(max_examples=120, deadline=None)
@given(tables(), st.integers(1, 12), st.integers(0, 30))
def test_nearest_rows__exactly_as_without_the_copy(table, n_wanted, cut):
    rows, query = table
    parts = [rows[:cut], rows[cut:]]
    shards, rough = (
        EmbeddingShards(parts),
        QuantisedShards(EmbeddingShards(parts), [in_memory(part) for part in parts]),
    )
    expected = best(rows, query, n_wanted)
    for source in (shards, rough):
        (found,) = nearest_rows(source, query, n_wanted, threads=1)
        assert (found.rows.tolist(), found.scores.tolist()) == expected
        scores = all_scores(rows, query)
        for threshold in (0.0, 0.5, *expected[1][-1:]):
            above = np.concatenate(
                [np.empty(0, int), *rows_above(source, query, threshold, threads=1)]
            )
            assert above.tolist() == np.flatnonzero(scores >= threshold).tolist()


def test_rough__error_is_within_its_bound():
    draws = np.random.default_rng(3)
    rows = (draws.standard_normal((500, 64)) * 10.0 ** draws.uniform(-3, 3, (500, 1))).astype(
        np.float32
    )
    query = draws.standard_normal(64).astype(np.float32)
    codes, factors, slack = in_memory(rows)
    guess = (codes @ (query / np.linalg.norm(query))) * factors
    errors = np.abs(guess - all_scores(rows, query))
    assert (errors <= slack + 1e-6).all()
    assert slack.max() < 0.02


@pytest.fixture
def files(tmp_path):
    draws = np.random.default_rng(4)
    for name, n_rows in (("a", 300), ("b", 77)):
        np.save(tmp_path / f"{name}.npy", draws.standard_normal((n_rows, 21)).astype(np.float32))
    return tmp_path


def opened(files):
    return EmbeddingShards([np.load(files / f"{name}.npy", mmap_mode="r") for name in ("a", "b")])


def answer(files, *, uses_copy=True):
    shards = opened(files)
    query = np.linspace(-1, 1, 21)
    (found,) = nearest_rows(quantise_shards(shards) if uses_copy else shards, query, 9)
    return found.rows.tolist(), found.scores.tolist()


def test_quantised__made_once(files):
    told = []
    quantise_shards(opened(files), progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (377, 377)
    copies = {path.name: path.stat().st_ino for path in files.glob(f"*{INT8_SUFFIX}")}
    assert sorted(copies) == [f"a.npy{INT8_SUFFIX}", f"b.npy{INT8_SUFFIX}"]
    assert answer(files) == answer(files, uses_copy=False)
    assert {path.name: path.stat().st_ino for path in files.glob(f"*{INT8_SUFFIX}")} == copies


@pytest.mark.parametrize("harm", ["cut", "longer head", "code", "tail", "empty", "text", "swapped"])
def test_quantised__damaged_copy_is_made_anew(files, harm):
    quantise_shards(opened(files))
    path = files / f"a.npy{INT8_SUFFIX}"
    sound = path.read_bytes()
    content = bytearray(sound)
    if harm == "code":
        content[5000] ^= 64
    if harm == "tail":
        content[-7] ^= 1
    if harm == "longer head":
        content[4090] = ord("x")
    if harm == "swapped":
        content = bytearray((files / f"b.npy{INT8_SUFFIX}").read_bytes())
    path.write_bytes({"cut": sound[:-9], "empty": b"", "text": b"hello"}.get(harm, bytes(content)))
    assert answer(files) == answer(files, uses_copy=False)
    assert path.read_bytes() == sound


def test_quantised__copies_larger_than_memory_give_pages_back(files, monkeypatch):
    monkeypatch.setattr("weakspot.project.nearest_rows.KEPT_MAPPED_BYTES", 0)
    assert answer(files) == answer(files, uses_copy=False)


def test_quantised__embeddings_that_changed(files):
    quantise_shards(opened(files))
    np.save(files / "b.npy", -np.load(files / "b.npy"))
    assert answer(files) == answer(files, uses_copy=False)
    assert not list(files.glob("*.tmp-*"))


def test_quantised__embeddings_in_memory(files):
    with pytest.raises(DataError, match=r"not in a file.*--index exact"):
        quantise_shards(EmbeddingShards([np.array(np.load(files / "a.npy"))]))


def test_quantised__place_that_cannot_be_written(files):
    (files / f"b.npy{INT8_SUFFIX}").mkdir()
    with pytest.raises(StoreError, match="cannot be written"):
        quantise_shards(opened(files))
