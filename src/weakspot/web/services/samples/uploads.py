"""Trying an image that is not in the project: what the classifier says of it, and which samples look like it."""

import numpy as np
from PIL import Image

from weakspot.core.arrays import BoolArray, FloatArray
from weakspot.nearest.images import label_texts
from weakspot.nearest.scan import nearest_rows
from weakspot.nearest.shards import EmbeddingShards
from weakspot.pipeline.preparation import CLIP
from weakspot.web.services.samples.asking import (
    classify_images,
    embed_images,
    lock_of_models,
    with_classifier,
)
from weakspot.web.services.samples.facts import answers_of
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace

N_CLASSES = 5
N_NEAREST = 8


class ClassChance(View):
    """How likely a class is."""

    title: str
    probability: float


class NearSample(View):
    """A sample of the discovery half that looks like the image.

    Args:
        row: its row number.
        label: its true class; several are joined by commas.
        answer: what the classifier answered.
        is_failure: whether that was a failure.
        similarity: cosine of the angle to the image.
    """

    row: int
    label: str
    answer: str
    is_failure: bool
    similarity: float


class TrialView(View):
    """What came of trying an image; nothing of it is kept.

    Args:
        tables: which tables the row numbers are of.
        width: of the image as it was decoded.
        height: of the image as it was decoded.
        classes: the likeliest classes, the likeliest first; of a multi-label classifier each on its own.
        nearest: samples that look most like it; empty without an embedder.
    """

    tables: str
    width: int
    height: int
    classes: list[ClassChance]
    nearest: list[NearSample]


def needed_side(workspace: Workspace) -> int | None:
    """Return the shortest image side that the models need; None for full size.

    Raises:
        StoreError: if there is no classifier to ask.
    """
    prepared = with_classifier(workspace)
    sides = [
        part.image_side for part in (prepared.classifier, prepared.embedder) if part is not None
    ]
    known = [side for side in sides if side is not None]
    return max(known) if len(known) == len(sides) else None


def try_image(workspace: Workspace, image: Image.Image) -> TrialView:
    """Return what the classifier says of an RGB image, and the samples of the discovery half that look like it.

    Raises:
        StoreError: if there is no classifier to ask.
    """
    prepared = with_classifier(workspace)
    with lock_of_models(workspace):
        embeddings = embed_images(prepared, [image])
        probabilities = classify_images(prepared, [image], embeddings)[0]
    names = prepared.samples.dataset.class_names
    best = np.argsort(-probabilities, kind="stable")[:N_CLASSES]
    return TrialView(
        tables=workspace.tables_key,
        width=image.width,
        height=image.height,
        classes=[
            ClassChance(title=names[code], probability=float(probabilities[code])) for code in best
        ],
        nearest=[] if embeddings is None else _nearest(workspace, embeddings[0]),
    )


def _nearest(workspace: Workspace, embedding: FloatArray) -> list[NearSample]:
    samples = workspace.discovery
    within = np.zeros(len(samples.dataset), dtype=np.bool_)
    within[samples.rows] = True
    (found,) = nearest_rows(
        EmbeddingShards([samples.space(CLIP).embeddings]), embedding, N_NEAREST, within=within
    )
    rows = found.rows
    failed = workspace.once("failures by row", lambda: _failures(workspace))[rows]
    labels, answers = label_texts(samples.dataset, rows), answers_of(samples.dataset, rows, failed)
    return [
        NearSample(
            row=int(row),
            label=label,
            answer=answer,
            is_failure=bool(wrong),
            similarity=float(similarity),
        )
        for row, label, answer, wrong, similarity in zip(
            rows, labels, answers, failed, found.scores, strict=True
        )
    ]


def _failures(workspace: Workspace) -> BoolArray:
    found = np.zeros(len(workspace.samples.dataset), dtype=np.bool_)
    for problem in workspace.problems.values():
        found[problem.rows] |= problem.failed
    return found
