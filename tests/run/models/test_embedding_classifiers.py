from dataclasses import dataclass

import numpy as np

from weakspot.core.dataset import Task, dataset_from_columns
from weakspot.core.roles import ClassifierOutput
from weakspot.core.samples import EmbeddingSpace
from weakspot.run.models import CHUNK_ROWS, classify_embeddings

N_ROWS = CHUNK_ROWS + 3


@dataclass(frozen=True)
class _Halves:
    """Says how large the first number is; its classes stand the other way round than the data set's."""

    has_features: bool = True
    class_names: tuple[str, ...] = ("pear", "apple")
    classifier_id: str = "halves"
    task: Task = Task.SINGLE_LABEL
    reads: str = "embeddings"
    image_side: int | None = None
    head: None = None

    def prepare(self, image):
        raise NotImplementedError

    def classify(self, prepared):
        features = np.stack(prepared)
        pear = features[:, 0]
        probabilities = np.stack([pear, 1 - pear], axis=1)
        return ClassifierOutput(
            probabilities=probabilities, features=features * 2 if self.has_features else None
        )


def _classified(classifier):
    embeddings = np.random.default_rng(0).random((N_ROWS, 2)).astype(np.float32)
    embeddings[5] = np.nan
    dataset = dataset_from_columns(class_names=["apple", "pear"], labels=[0] * N_ROWS)
    return embeddings, classify_embeddings(
        dataset,
        classifier,
        EmbeddingSpace(encoder_id="e", embeddings=embeddings),
        label_thresholds={},
    )


def test_classify_embeddings__every_chunk_lands_in_its_rows_and_missing_embeddings_have_no_prediction():
    embeddings, found = _classified(_Halves())
    known = np.arange(N_ROWS) != 5
    assert found.n_predictions == N_ROWS - 1
    assert np.array_equal(found.own.embeddings, embeddings * 2, equal_nan=True)
    assert np.allclose(found.dataset.probabilities[known, 1], embeddings[known, 0])
    assert found.dataset.predictions[5] == -1


def test_classify_embeddings__a_classifier_without_features_has_no_space():
    assert _classified(_Halves(has_features=False))[1].own is None
