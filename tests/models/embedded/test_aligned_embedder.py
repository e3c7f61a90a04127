import numpy as np
import pytest
from PIL import Image

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import ModelError
from weakspot.models.embedded.encoder import (
    AlignedEmbedder,
    AlignedGivenEmbeddings,
    aligned_embedder,
)
from weakspot.models.given_embeddings import GivenEmbeddings
from weakspot.models.text_side import TextProjection

WORDS = {"red": [1.0, 0.0, 0.0], "green": [0.0, 1.0, 0.0], "blue": [0.0, 0.0, 1.0]}


class MeanColour:
    """An image encoder without text: the embedding of an image is its mean colour."""

    encoder_id = "mean-colour"
    dimension = 3
    image_side = None
    has_text = False

    def prepare(self, image):
        return np.asarray(image, np.float32).mean(axis=(0, 1))

    def embed_prepared(self, prepared):
        return np.stack(prepared)


class WordSentences:
    """A sentence encoder that knows three words."""

    def encode(self, texts):
        return np.array(
            [
                np.sum([WORDS.get(word, [0.0, 0.0, 0.0]) for word in text.split()], axis=0)
                for text in texts
            ],
            np.float32,
        )


@pytest.fixture
def text_side(tmp_path):
    """Words lie where their colours lie once the grey mean is taken away."""
    identity, none = np.eye(3, dtype=np.float32), np.zeros((3, 0), np.float32)
    projection = TextProjection(
        image_mean=np.full(3, 1 / 3, np.float32),
        text_mean=np.full(3, 1 / 3, np.float32),
        linear=identity,
        bias=np.zeros(3, np.float32),
        hidden_in=none,
        hidden_bias=np.zeros(0, np.float32),
        hidden_out=none.T,
    )
    projection.save(tmp_path / "text_side.npz", half=False)
    return tmp_path


def test_embed_texts__nearest_image_has_the_colour(text_side):
    embedder = AlignedEmbedder(images=MeanColour(), text_side=text_side, sentences=WordSentences())
    images = [Image.new("RGB", (4, 4), colour) for colour in ("red", "lime", "blue")]
    images = embedder.embed_prepared([embedder.prepare(image) for image in images])
    similarity = embedder.embed_texts(["a red thing", "a green thing", "a blue thing"]) @ images.T
    assert np.argmax(similarity, axis=1).tolist() == [0, 1, 2]
    np.testing.assert_allclose(np.diag(similarity), 1.0, atol=1e-6)


def test_encoder_id__names_encoder_and_text_side(text_side):
    embedder = AlignedEmbedder(
        images=MeanColour(), text_side=text_side / "text_side.npz", sentences=WordSentences()
    )
    assert embedder.encoder_id.startswith("mean-colour+text@")
    assert embedder.has_text


def test_encoder_id__text_side_is_missing(tmp_path):
    with pytest.raises(ModelError, match="weakspot lab align"):
        _ = AlignedEmbedder(images=MeanColour(), text_side=tmp_path / "nowhere.npz").encoder_id


def test_aligned_embedder__given_embeddings_keep_missing_rows(text_side, tmp_path):
    np.savez(
        tmp_path / "v.npz",
        embeddings=np.array([[9.0, 1.0, 1.0], [1.0, 9.0, 1.0]]),
        ids=np.array(["a", "b"]),
    )
    embedder = aligned_embedder(
        images={"name": "given-embeddings", "options": {"path": str(tmp_path / "v.npz")}},
        text_side=text_side,
        sentences=WordSentences(),
    )
    assert isinstance(embedder, AlignedGivenEmbeddings)
    dataset = dataset_from_columns(
        class_names=["x"], labels=[0, 0, 0], sample_ids=["b", "nobody", "a"]
    )
    found = embedder.embeddings_for(dataset)
    assert found.n_missing == 1
    assert np.isnan(found.embeddings[1]).all()
    similarity = found.embeddings[[0, 2]] @ embedder.embed_texts(["green", "red"]).T
    assert similarity[0, 0] > 0.9
    assert similarity[0, 1] < 0
    assert similarity[1, 1] > 0.9


def test_embeddings_for__only_with_given_embeddings(text_side):
    dataset = dataset_from_columns(class_names=["x"], labels=[0])
    with pytest.raises(ModelError, match="Only given embeddings"):
        AlignedGivenEmbeddings(images=MeanColour(), text_side=text_side).embeddings_for(dataset)
    assert not hasattr(AlignedEmbedder(images=MeanColour(), text_side=text_side), "embeddings_for")
    assert hasattr(GivenEmbeddings, "embeddings_for")
