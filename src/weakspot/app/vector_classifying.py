"""Classifiers that read vectors instead of pictures, such as scikit-learn pipelines."""

from collections.abc import Mapping

import numpy as np

from weakspot.app.classifying import Classified
from weakspot.core.arrays import FloatArray
from weakspot.core.dataset import Dataset
from weakspot.core.errors import ModelError
from weakspot.core.roles import Classifier
from weakspot.core.samples import VectorSpace
from weakspot.ingest.outcomes import class_columns, with_probabilities

CHUNK_ROWS = 8192


def reads_vectors(classifier: Classifier) -> bool:
    """Return whether a classifier takes vectors of the joint space."""
    return getattr(classifier, "reads", "pictures") == "vectors"


def classify_vectors(
    dataset: Dataset, classifier: Classifier, joint: VectorSpace | None, *, label_thresholds: Mapping[str, float]
) -> Classified:
    """Return outcomes of every sample that has a vector; it is cheap enough not to be stored."""
    where = classifier.classifier_id
    if joint is None:
        raise ModelError("This classifier reads vectors, and there are none.", where=where, fix="Configure an embedder.")
    rows = np.flatnonzero(np.isfinite(joint.vectors[:, 0]))
    chunks = [rows[start : start + CHUNK_ROWS] for start in range(0, len(rows), CHUNK_ROWS)]
    outputs = [classifier.classify(list(np.asarray(joint.vectors[chunk]))) for chunk in chunks]
    if not outputs:
        raise ModelError("Not one sample has a vector to classify.", where=where)
    columns = class_columns(dataset, classifier.class_names, n_columns=outputs[0].probabilities.shape[1], classifier_id=where)
    probabilities = _spread(np.concatenate([output.probabilities for output in outputs])[:, columns], rows, len(dataset))
    features = [output.features for output in outputs if output.features is not None]
    own = None
    if len(features) == len(outputs):
        own = VectorSpace(encoder_id=f"{where}/features", vectors=_spread(np.concatenate(features), rows, len(dataset)))
    return Classified(
        dataset=with_probabilities(dataset, probabilities, thresholds=label_thresholds),
        own=own,
        n_new=len(rows),
        n_outcomes=len(rows),
    )


def _spread(values: FloatArray, rows: np.ndarray[tuple[int], np.dtype[np.int64]], n_rows: int) -> FloatArray:
    spread = np.full((n_rows, values.shape[1]), np.nan, dtype=np.float32)
    spread[rows] = values
    return spread
