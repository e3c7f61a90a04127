import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from weakspot.core.arrays import unit_rows
from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import ConfigError, DataError, ModelError
from weakspot.models.given_embeddings import GivenEmbeddings

EMBEDDINGS = np.array([[3.0, 4.0], [0.0, 2.0], [5.0, 0.0]], dtype=np.float32)
UNIT = [[0.6, 0.8], [0.0, 1.0], [1.0, 0.0]]


class LetterEmbedder:
    """A text side with one number a vowel."""

    encoder_id = "letters@1"

    def __init__(self, dimension: int = 2) -> None:
        self.dimension = dimension

    def embed_texts(self, texts):
        return unit_rows(
            np.array([[text.count(vowel) for vowel in "aeiou"[: self.dimension]] for text in texts])
        )


def dataset(names=("one", "two", "three")):
    return dataset_from_columns(
        class_names=["cat"], labels=[0] * len(names), sample_ids=list(names)
    )


def test_embeddings_for__npy_in_order(tmp_path):
    np.save(tmp_path / "v.npy", EMBEDDINGS)
    given = GivenEmbeddings(path=tmp_path / "v.npy")
    found = given.embeddings_for(dataset())
    np.testing.assert_allclose(found.embeddings, UNIT, atol=1e-6)
    assert (found.n_missing, found.matched_by) == (0, "order")
    assert (given.dimension, given.image_side, given.has_text) == (2, None, False)
    digest = hashlib.sha256((tmp_path / "v.npy").read_bytes()).hexdigest()
    assert given.encoder_id == f"given/v.npy@{digest[:16]}"


def test_embeddings_for__npy_with_a_file_of_names(tmp_path):
    np.save(tmp_path / "v.npy", EMBEDDINGS)
    (tmp_path / "names.txt").write_text("three\none\nelsewhere\n")
    found = GivenEmbeddings(path=tmp_path / "v.npy", ids=tmp_path / "names.txt").embeddings_for(
        dataset()
    )
    np.testing.assert_allclose(
        found.embeddings, [[0.0, 1.0], [np.nan, np.nan], [0.6, 0.8]], atol=1e-6
    )
    assert (found.n_missing, found.matched_by) == (1, "sample_id")


def test_embeddings_for__npz_by_location(tmp_path):
    np.savez(tmp_path / "v.npz", embeddings=EMBEDDINGS, ids=np.array(["b.jpg", "a.jpg", "c.jpg"]))
    samples = dataset_from_columns(
        class_names=["cat"],
        labels=[0, 0, 0],
        sample_ids=["1", "2", "3"],
        locations=["a.jpg", None, "b.jpg"],
    )
    found = GivenEmbeddings(path=tmp_path / "v.npz").embeddings_for(samples)
    np.testing.assert_allclose(
        found.embeddings, [[0.0, 1.0], [np.nan, np.nan], [0.6, 0.8]], atol=1e-6
    )
    assert found.matched_by == "location"


@pytest.mark.parametrize("kind", [pa.list_(pa.float64()), pa.list_(pa.float32(), 2)])
def test_embeddings_for__parquet_with_an_empty_row(tmp_path, kind):
    rows = pa.array([[3.0, 4.0], None, [5.0, 0.0]], kind)
    pq.write_table(
        pa.table({"path": ["one", "two", "three"], "embedding": rows}), tmp_path / "v.parquet"
    )
    found = GivenEmbeddings(path=tmp_path / "v.parquet").embeddings_for(dataset())
    np.testing.assert_allclose(
        found.embeddings, [[0.6, 0.8], [np.nan, np.nan], [1.0, 0.0]], atol=1e-6
    )
    assert found.n_missing == 1


def test_embeddings_for__a_row_that_is_not_finite_counts_as_missing(tmp_path):
    np.save(
        tmp_path / "v.npy", np.array([[1.0, np.inf], [0.0, 1.0], [np.nan, 1.0]], dtype=np.float32)
    )
    found = GivenEmbeddings(path=tmp_path / "v.npy").embeddings_for(dataset())
    np.testing.assert_array_equal(np.isnan(found.embeddings).all(axis=1), [True, False, True])
    assert found.n_missing == 2


def test_embeddings_for__no_name_fits(tmp_path):
    np.savez(tmp_path / "v.npz", embeddings=EMBEDDINGS, ids=np.array(["x", "y", "z"]))
    with pytest.raises(
        DataError, match=r"None of the samples.*'x', 'y', 'z'.*\['one', 'two', 'three'\]"
    ):
        GivenEmbeddings(path=tmp_path / "v.npz").embeddings_for(dataset())


def test_embeddings_for__order_with_another_number(tmp_path):
    np.save(tmp_path / "v.npy", EMBEDDINGS)
    with pytest.raises(DataError, match="3 embeddings without names for 2 samples"):
        GivenEmbeddings(path=tmp_path / "v.npy").embeddings_for(dataset(["one", "two"]))


def test_embed_texts__by_another_embedder(tmp_path):
    np.save(tmp_path / "v.npy", EMBEDDINGS)
    given = GivenEmbeddings(path=tmp_path / "v.npy", text=LetterEmbedder())
    np.testing.assert_allclose(
        given.embed_texts(["banana", "eel", "theatre are"]),
        [[1, 0], [0, 1], [0.5547, 0.83205]],
        atol=1e-4,
    )
    assert given.has_text
    assert given.encoder_id.endswith("+letters@1")


def test_embed_texts__of_another_length(tmp_path):
    np.save(tmp_path / "v.npy", EMBEDDINGS)
    with pytest.raises(ModelError, match="gives 3 numbers a phrase, the given embeddings have 2"):
        GivenEmbeddings(path=tmp_path / "v.npy", text=LetterEmbedder(3)).embed_texts(["banana"])


def test_embed_texts__by_a_registered_name_that_does_not_exist(tmp_path):
    np.save(tmp_path / "v.npy", EMBEDDINGS)
    with pytest.raises(ConfigError, match="There is no embedder called 'nothing'"):
        GivenEmbeddings(path=tmp_path / "v.npy", text={"name": "nothing"}).embed_texts(["banana"])


def test_embed_texts__without_a_text_side(tmp_path):
    np.save(tmp_path / "v.npy", EMBEDDINGS)
    with pytest.raises(ModelError, match="no text side"):
        GivenEmbeddings(path=tmp_path / "v.npy").embed_texts(["banana"])


def test_prepare__refuses_new_images(tmp_path):
    np.save(tmp_path / "v.npy", EMBEDDINGS)
    with pytest.raises(ModelError, match="cannot be made for new images"):
        GivenEmbeddings(path=tmp_path / "v.npy").prepare(Image.new("RGB", (4, 4)))


def test_encoder_id__missing_file(tmp_path):
    with pytest.raises(DataError, match="The file of embeddings is missing"):
        _ = GivenEmbeddings(path=tmp_path / "nothing.npy").encoder_id
