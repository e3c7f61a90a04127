"""Trying a picture that is not in the project: what the classifier says of it, and which samples look like it."""

import threading
from typing import cast

import numpy as np
from PIL import Image

from weakspot.app.browsing.view import View
from weakspot.app.browsing.workspace import Workspace
from weakspot.app.nearest_pictures import label_texts
from weakspot.app.preparation import JOINT, Prepared
from weakspot.app.vector_classifying import reads_vectors
from weakspot.core.arrays import BoolArray, FloatArray, IntArray, unit_rows
from weakspot.core.dataset import Dataset, Task
from weakspot.core.errors import StoreError
from weakspot.core.failures import predicted_classes
from weakspot.ingest.outcomes import class_columns
from weakspot.nearest.scan import nearest_rows
from weakspot.nearest.shards import VectorShards

N_CLASSES = 5
N_NEAREST = 8


class ClassChance(View):
    """How likely a class is."""

    title: str
    probability: float


class NearSample(View):
    """A sample of the discovery half that looks like the picture.

    Args:
        row: its row number.
        label: its true class; several are joined by commas.
        answer: what the classifier said of it.
        is_failure: whether that was a failure.
        similarity: cosine of the angle to the picture.
    """

    row: int
    label: str
    answer: str
    is_failure: bool
    similarity: float


class TrialView(View):
    """What came of trying a picture; nothing of it is kept.

    Args:
        tables: which tables the row numbers are of.
        width: of the picture as it was decoded.
        height: of the picture as it was decoded.
        classes: the likeliest classes, the likeliest first; of a multi-label classifier each on its own.
        nearest: samples that look most like it; empty without an embedder.
    """

    tables: str
    width: int
    height: int
    classes: list[ClassChance]
    nearest: list[NearSample]


def needed_side(workspace: Workspace) -> int | None:
    """Return the shortest picture side that the models need; None for full size.

    Raises:
        StoreError: if there is no classifier to ask.
    """
    prepared = _with_classifier(workspace)
    sides = [part.picture_side for part in (prepared.classifier, prepared.embedder) if part is not None]
    known = [side for side in sides if side is not None]
    return max(known) if len(known) == len(sides) else None


def try_picture(workspace: Workspace, picture: Image.Image) -> TrialView:
    """Return what the classifier says of an RGB picture, and the samples of the discovery half that look like it.

    Raises:
        StoreError: if there is no classifier to ask.
    """
    prepared = _with_classifier(workspace)
    # Models are not made for several threads at once.
    with cast(threading.Lock, workspace.once("turn of a tried picture", threading.Lock)):
        vector = _vector(prepared, picture)
        probabilities = _probabilities(prepared, picture, vector)
    names = prepared.samples.dataset.class_names
    best = np.argsort(-probabilities, kind="stable")[:N_CLASSES]
    return TrialView(
        tables=workspace.tables_key,
        width=picture.width,
        height=picture.height,
        classes=[ClassChance(title=names[code], probability=float(probabilities[code])) for code in best],
        nearest=[] if vector is None else _nearest(workspace, vector),
    )


def _with_classifier(workspace: Workspace) -> Prepared:
    prepared = workspace.prepared
    if prepared.classifier is None:
        raise StoreError(
            "There is no classifier to ask: the project has predictions only.",
            where="[classifier]",
            fix="Configure a classifier in weakspot.toml to try pictures.",
        )
    return prepared


def _vector(prepared: Prepared, picture: Image.Image) -> FloatArray | None:
    embedder = prepared.embedder
    if embedder is None or JOINT not in prepared.samples.spaces:
        return None
    found = np.asarray(embedder.embed_prepared([embedder.prepare(picture)]), dtype=np.float32)
    vector: FloatArray = unit_rows(found)[0]
    return vector


def _probabilities(prepared: Prepared, picture: Image.Image, vector: FloatArray | None) -> FloatArray:
    classifier = prepared.classifier
    assert classifier is not None
    if reads_vectors(classifier):
        if vector is None:
            raise StoreError(
                "The classifier reads vectors, and there is no embedder to make one of the picture.", where="[embedder]"
            )
        output = classifier.classify([vector])
    else:
        output = classifier.classify([classifier.prepare(picture)])
    dataset, found = prepared.samples.dataset, np.asarray(output.probabilities, dtype=np.float32)
    names = classifier.class_names
    columns = class_columns(dataset, names, n_columns=found.shape[1], classifier_id=classifier.classifier_id)
    probabilities: FloatArray = np.nan_to_num(found[0, columns])
    return probabilities


def _nearest(workspace: Workspace, vector: FloatArray) -> list[NearSample]:
    samples = workspace.discovery
    within = np.zeros(len(samples.dataset), dtype=np.bool_)
    within[samples.rows] = True
    (found,) = nearest_rows(VectorShards([samples.space(JOINT).vectors]), vector, N_NEAREST, within=within)
    rows = found.rows
    failed = cast("BoolArray", workspace.once("failures by row", lambda: _failures(workspace)))[rows]
    labels, answers = label_texts(samples.dataset, rows), _answers(samples.dataset, rows, failed)
    return [
        NearSample(row=int(row), label=label, answer=answer, is_failure=bool(wrong), similarity=float(similarity))
        for row, label, answer, wrong, similarity in zip(rows, labels, answers, failed, found.scores, strict=True)
    ]


def _failures(workspace: Workspace) -> BoolArray:
    found = np.zeros(len(workspace.samples.dataset), dtype=np.bool_)
    for problem in workspace.problems.values():
        found[problem.rows] |= problem.failed
    return found


def _answers(dataset: Dataset, rows: IntArray, failed: BoolArray) -> list[str]:
    if dataset.task is Task.SINGLE_LABEL:
        return [dataset.class_names[code] for code in predicted_classes(dataset, rows)]
    return ["wrong" if one else "right" for one in failed]
