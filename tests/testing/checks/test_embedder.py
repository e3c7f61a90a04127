import numpy as np

from weakspot.core.arrays import unit_rows
from weakspot.testing.fakes import (
    PlantedEmbedder,
)


class ModelAround:
    """Passes everything on to a right model but for what a subclass breaks."""

    def __init__(self):
        self.inner = self.right()

    def __getattr__(self, name):
        return getattr(self.inner, name)


class Embedding(ModelAround):
    right = PlantedEmbedder


class LongEmbeddings(Embedding):
    def embed_prepared(self, prepared):
        return 2 * self.inner.embed_prepared(prepared)


class Double(Embedding):
    def embed_texts(self, texts):
        return self.inner.embed_texts(texts).astype(np.float64)


class Centring(Embedding):
    def embed_texts(self, texts):
        embeddings = self.inner.embed_texts(texts)
        return unit_rows(embeddings - 0.9 * embeddings.mean(axis=0))


class Mute(Embedding):
    has_text = False


def test_check_embedder__broken_in_one_way(rejected):
    assert "length one" in rejected(
        "embedders", "image_embeddings_are_unit_embeddings", LongEmbeddings
    )
    assert "not float32" in rejected("embedders", "phrase_embeddings_are_unit_embeddings", Double)
    assert "One phrase at a time" in rejected("embedders", "batches_do_not_matter", Centring)
    assert "went through" in rejected("embedders", "phrase_embeddings_are_unit_embeddings", Mute)
