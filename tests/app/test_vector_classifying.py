from dataclasses import dataclass

import numpy as np

from weakspot.app.vector_classifying import CHUNK_ROWS, classify_vectors
from weakspot.core.dataset import Task, dataset_from_columns
from weakspot.core.roles import ClassifierOutput
from weakspot.core.samples import VectorSpace

N_ROWS = CHUNK_ROWS + 3


@dataclass(frozen=True)
class _Halves:
    """Says how large the first number is; its classes stand the other way round than the data set's."""

    has_features: bool = True
    class_names: tuple[str, ...] = ("pear", "apple")
    classifier_id: str = "halves"
    task: Task = Task.SINGLE_LABEL
    reads: str = "vectors"
    picture_side: int | None = None
    head: None = None

    def prepare(self, picture):
        raise NotImplementedError

    def classify(self, prepared):
        features = np.stack(prepared)
        pear = features[:, 0]
        probabilities = np.stack([pear, 1 - pear], axis=1)
        return ClassifierOutput(probabilities=probabilities, features=features * 2 if self.has_features else None)


def _classified(classifier):
    vectors = np.random.default_rng(0).random((N_ROWS, 2)).astype(np.float32)
    vectors[5] = np.nan
    dataset = dataset_from_columns(class_names=["apple", "pear"], labels=[0] * N_ROWS)
    return vectors, classify_vectors(dataset, classifier, VectorSpace(encoder_id="e", vectors=vectors), label_thresholds={})


def test_classify_vectors__every_chunk_lands_in_its_rows_and_missing_vectors_have_no_outcome():
    vectors, found = _classified(_Halves())
    known = np.arange(N_ROWS) != 5
    assert found.n_outcomes == N_ROWS - 1
    assert np.array_equal(found.own.vectors, vectors * 2, equal_nan=True)
    assert np.allclose(found.dataset.probabilities[known, 1], vectors[known, 0])
    assert found.dataset.predictions[5] == -1


def test_classify_vectors__a_classifier_without_features_has_no_space():
    assert _classified(_Halves(has_features=False))[1].own is None
