"""Classifiers that read embeddings instead of images, such as scikit-learn pipelines."""

from collections.abc import Mapping

import numpy as np

from weakspot.core.arrays import FloatArray, IntArray
from weakspot.core.dataset import Dataset
from weakspot.core.errors import ModelError
from weakspot.core.roles import Classifier
from weakspot.core.samples import EmbeddingSpace
from weakspot.ingest.prediction_columns import class_columns, with_probabilities
from weakspot.pipeline.models.classification import Classified

CHUNK_ROWS = 8192


def reads_embeddings(classifier: Classifier) -> bool:
    return getattr(classifier, "reads", "images") == "embeddings"


def classify_embeddings(
    dataset: Dataset,
    classifier: Classifier,
    joint: EmbeddingSpace | None,
    *,
    label_thresholds: Mapping[str, float],
) -> Classified:
    """Return predictions of every sample that has an embedding; it is cheap enough not to be stored."""
    where = classifier.classifier_id
    if joint is None:
        raise ModelError(
            "This classifier reads embeddings, and there are none.",
            where=where,
            fix="Configure an embedder.",
        )
    rows = np.flatnonzero(np.isfinite(joint.embeddings[:, 0]))
    if not len(rows):
        raise ModelError("Not one sample has an embedding to classify.", where=where)
    probabilities, features = _answers(classifier, joint, rows)
    columns = class_columns(
        dataset, classifier.class_names, n_columns=probabilities.shape[1], classifier_id=where
    )
    return Classified(
        dataset=with_probabilities(dataset, probabilities[:, columns], thresholds=label_thresholds),
        own=None
        if features is None
        else EmbeddingSpace(encoder_id=f"{where}/features", embeddings=features),
        n_new=len(rows),
        n_predictions=len(rows),
    )


def _answers(
    classifier: Classifier, joint: EmbeddingSpace, rows: IntArray
) -> tuple[FloatArray, FloatArray | None]:
    """Return probabilities and features of all samples, NaN where nothing is known; None unless every chunk has features."""
    probabilities = features = np.empty((0, 0), dtype=np.float32)
    has_features = True
    for start in range(0, len(rows), CHUNK_ROWS):
        chunk = rows[start : start + CHUNK_ROWS]
        output = classifier.classify(list(np.asarray(joint.embeddings[chunk])))
        has_features &= output.features is not None
        if not start:
            probabilities = np.full(
                (len(joint.embeddings), output.probabilities.shape[1]), np.nan, dtype=np.float32
            )
        if not start and output.features is not None:
            features = np.full(
                (len(joint.embeddings), output.features.shape[1]), np.nan, dtype=np.float32
            )
        probabilities[chunk] = output.probabilities
        if has_features and output.features is not None:
            features[chunk] = output.features
    return probabilities, features if has_features else None
