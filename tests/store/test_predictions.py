import numpy as np
import pyarrow as pa
import pytest

from weakspot.core.errors import StoreError
from weakspot.store.array_files import packed_hashes
from weakspot.store.embeddings import PredictionCache

KEYS = packed_hashes(pa.array([f"{number:032x}" for number in range(3)]))
PROBABILITIES = np.array([[0.25, 0.75], [0.5, 0.5]], dtype=np.float32)
FEATURES = np.array([[1, 2, 3], [4, 5, 6]], dtype=np.float32)


@pytest.fixture
def cache(tmp_path):
    return PredictionCache(tmp_path / "predictions", identity="net@1")


def test_layout__nothing_yet(cache):
    assert cache.layout is None
    assert cache.probabilities(KEYS, np.array([0, 1])) is None
    assert cache.features(KEYS) is None


def test_append__probabilities_and_features(cache):
    cache.append(KEYS[:2], PROBABILITIES, FEATURES)
    reopened = PredictionCache(cache.folder, identity="net@1")
    assert reopened.layout == (2, 3)
    assert reopened.missing(KEYS).tolist() == [False, False, True]
    found = reopened.probabilities(KEYS, np.array([1, 0]))
    np.testing.assert_array_equal(found.values, [[0.75, 0.25], [0.5, 0.5], [np.nan, np.nan]])
    assert found.n_missing == 1
    np.testing.assert_array_equal(reopened.features(KEYS).values[:2], FEATURES)


def test_is_complete__after_refresh(cache):
    columns = np.array([0, 1])
    cache.append(KEYS[:2], PROBABILITIES, None)
    assert not cache.is_complete(KEYS[:2], columns)
    cache.refresh(KEYS[:2], columns)
    assert cache.is_complete(KEYS[:2], columns)
    assert not cache.is_complete(KEYS, columns)
    assert cache.features(KEYS[:2]) is None


def test_append__other_layout_under_same_id(cache):
    cache.append(KEYS[:2], PROBABILITIES, FEATURES)
    with pytest.raises(
        StoreError, match="now gives 2 probabilities and 0 features a sample, but gave 2 and 3"
    ):
        cache.append(KEYS[2:], PROBABILITIES[:1], None)


def test_layout__damaged(cache):
    cache.append(KEYS[:2], PROBABILITIES, None)
    (cache.folder / "layout.json").write_text('{"n_classes": "two"}')
    with pytest.raises(StoreError, match="does not say how many classes"):
        _ = cache.layout
