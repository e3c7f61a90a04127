"""Asking the project's classifier about images that are not as the data has them: uploaded, or covered in part."""

import threading
from collections.abc import Sequence

import numpy as np
from PIL import Image

from weakspot.core.arrays import FloatArray, unit_rows
from weakspot.core.errors import StoreError
from weakspot.ingest.prediction_columns import class_columns
from weakspot.pipeline.models.embedding_classifiers import reads_embeddings
from weakspot.pipeline.preparation import CLIP, Prepared
from weakspot.web.services.workspace import Workspace


def lock_of_models(workspace: Workspace) -> threading.Lock:
    """Return what is held while models are asked: they are not made for several threads at once."""
    return workspace.once("lock of a tried image", threading.Lock)


def with_classifier(workspace: Workspace) -> Prepared:
    """Return samples and models.

    Raises:
        StoreError: if there is no classifier to ask.
    """
    prepared = workspace.prepared
    if prepared.classifier is None:
        raise StoreError(
            "There is no classifier to ask: the project has predictions only.",
            where="[classifier]",
            fix="Configure a classifier in weakspot.toml to try images.",
        )
    return prepared


def embed_images(prepared: Prepared, images: Sequence[Image.Image]) -> FloatArray | None:
    """Return unit vectors [n, d] of images, None if there is no embedder."""
    embedder = prepared.embedder
    if embedder is None or CLIP not in prepared.samples.spaces:
        return None
    found = embedder.embed_prepared([embedder.prepare(image) for image in images])
    embeddings: FloatArray = unit_rows(np.asarray(found, dtype=np.float32))
    return embeddings


def classify_images(
    prepared: Prepared, images: Sequence[Image.Image], embeddings: FloatArray | None = None
) -> FloatArray:
    """Return probabilities [n, c] of RGB images, in the order of the data set's classes.

    Args:
        prepared: with a classifier.
        images: upright, RGB.
        embeddings: of these images, for a classifier that reads them; made here if they are not given.

    Raises:
        StoreError: if the classifier reads embeddings and nothing makes them.
    """
    classifier = prepared.classifier
    assert classifier is not None
    if reads_embeddings(classifier):
        known = embed_images(prepared, images) if embeddings is None else embeddings
        if known is None:
            raise StoreError(
                "The classifier reads embeddings, and there is no embedder to make one of the image.",
                where="[embedder]",
            )
        output = classifier.classify(list(known))
    else:
        output = classifier.classify([classifier.prepare(image) for image in images])
    dataset, found = prepared.samples.dataset, np.asarray(output.probabilities, dtype=np.float32)
    columns = class_columns(
        dataset,
        classifier.class_names,
        n_columns=found.shape[1],
        classifier_id=classifier.classifier_id,
    )
    probabilities: FloatArray = np.nan_to_num(found[:, columns])
    return probabilities
