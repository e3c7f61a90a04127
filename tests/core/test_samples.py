import numpy as np
import pytest

from weakspot.core.arrays import BLOCK_ROWS
from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import DataError
from weakspot.core.samples import EmbeddingSpace, SampleSet


@pytest.fixture
def samples():
    data = dataset_from_columns(class_names=["a"], labels=[0, 0, 0], sample_ids=["x", "y", "z"])
    space = EmbeddingSpace(
        encoder_id="e", embeddings=np.array([[1, 2], [3, 4], [5, 6]], dtype=np.float64)
    )
    return SampleSet(dataset=data, rows=np.array([0, 2]), spaces={"clip": space}, name="test")


def test_embeddings__own_rows_or_others(samples):
    assert len(samples) == 2
    assert samples.embeddings("clip").tolist() == [[1, 2], [5, 6]]
    assert samples.embeddings("clip", np.array([1])).tolist() == [[3, 4]]
    assert samples.embeddings("clip").dtype == np.float32


def test_embeddings__read_from_a_memory_map_are_a_copy(samples, tmp_path):
    np.save(tmp_path / "v.npy", np.eye(3, dtype=np.float32))
    mapped = EmbeddingSpace(encoder_id="e", embeddings=np.load(tmp_path / "v.npy", mmap_mode="r"))
    found = SampleSet(
        dataset=samples.dataset, rows=samples.rows, spaces={"clip": mapped}
    ).embeddings("clip")
    found[:] = 7
    assert np.load(tmp_path / "v.npy").max() == 1


def test_space__unknown(samples):
    with pytest.raises(DataError, match=r"no embeddings called 'features'.*\['clip'\]"):
        samples.space("features")


def test_only__same_view_on_other_rows(samples):
    other = samples.only(np.array([1]), name="half")
    assert (other.rows.tolist(), other.name, other.dataset) == ([1], "half", samples.dataset)
    assert samples.only(np.array([1])).name == "test"


def test_digest__depends_on_the_ids_alone(samples):
    assert samples.digest() == samples.only(np.array([0, 2]), name="other").digest()
    assert samples.digest() != samples.only(np.array([0, 1])).digest()
    assert len(samples.digest()) == 32


def _many(n_rows):
    data = dataset_from_columns(class_names=["a"], labels=[0] * n_rows)
    embeddings = np.random.default_rng(1).standard_normal((n_rows, 4)).astype(np.float32)
    embeddings[::1000] = np.nan
    return SampleSet(
        dataset=data,
        rows=np.arange(n_rows),
        spaces={"clip": EmbeddingSpace(encoder_id="e", embeddings=embeddings)},
    )


def test_by_blocks__the_same_as_all_at_once_with_few_in_memory():
    samples, sizes = _many(2 * BLOCK_ROWS + 5), []
    rows = samples.rows[::-1]

    def measured(embeddings):
        sizes.append(len(embeddings))
        return embeddings * 2

    found = samples.by_blocks("clip", rows, measured)
    assert np.array_equal(found, samples.embeddings("clip", rows) * 2, equal_nan=True)
    assert sizes == [BLOCK_ROWS, BLOCK_ROWS, 5]
    assert samples.by_blocks("clip", rows[:0], measured).shape == (0, 4)


def test_has_embeddings__rows_of_nan_have_none():
    samples = _many(BLOCK_ROWS + 10)
    assert np.flatnonzero(~samples.has_embeddings("clip", samples.rows)).tolist() == list(
        range(0, BLOCK_ROWS + 10, 1000)
    )
