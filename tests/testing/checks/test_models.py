from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.arrays import unit_rows
from weakspot.core.roles import ClassifierOutput
from weakspot.testing import material
from weakspot.testing.fakes import (
    PlantedEmbedder,
    planted_classifier,
)


class ModelAround:
    """Passes everything on to a right model but for what a subclass breaks."""

    def __init__(self):
        self.inner = self.right()

    def __getattr__(self, name):
        return getattr(self.inner, name)


class Classifying(ModelAround):
    @staticmethod
    def right():
        return planted_classifier(material.small_world())


class Logits(Classifying):
    def classify(self, prepared):
        return ClassifierOutput(probabilities=self.inner.classify(prepared).probabilities * 3)


class BatchNormalised(Classifying):
    def classify(self, prepared):
        said = self.inner.classify(prepared).probabilities
        mixed = 0.5 * said + 0.5 * said.mean(axis=0, keepdims=True)
        return ClassifierOutput(
            probabilities=(mixed / mixed.sum(axis=1, keepdims=True)).astype(np.float32)
        )


class OtherHead(Classifying):
    @property
    def head(self):
        return replace(self.inner.head, weights=-self.inner.head.weights)


class NewId(Classifying):
    @property
    def classifier_id(self):
        return str(id(self))


class Blind(Classifying):
    def classify(self, prepared):
        return ClassifierOutput(probabilities=np.full((len(prepared), 4), 0.25, dtype=np.float32))


class Zeroing(Classifying):
    def classify(self, prepared):
        said = self.inner.classify(prepared)
        for item in prepared:
            item[:] = 0
        return said


@pytest.mark.parametrize(
    ("broken", "check", "said"),
    [
        (Logits, "probabilities_are_probabilities", "outside"),
        (BatchNormalised, "batches_do_not_matter", "One image at a time"),
        (OtherHead, "features_fit_the_head", "head on the features"),
        (NewId, "ids_are_stable", "changes"),
        (Blind, "images_are_told_apart", "same probabilities"),
        (Zeroing, "input_stays_as_it_is", "changed the prepared"),
    ],
)
def test_check_classifier__broken_in_one_way(rejected, broken, check, said):
    assert said in rejected("classifiers", check, broken)


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
