"""The images that look most like one: right ones and wrong ones, of those that people may look at."""

import numpy as np

from weakspot.core.arrays import BoolArray, FloatArray
from weakspot.nearest.scan import nearest_rows
from weakspot.nearest.shards import EmbeddingShards
from weakspot.pipeline.preparation import CLIP
from weakspot.web.services.images.page import ListedImage, list_images
from weakspot.web.services.images.visible import RIGHT, WRONG, visible_samples
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace

N_NEAREST = 8


class NearestImages(View):
    """What looks most like an image, most similar first.

    Args:
        tables: what row numbers belong to.
        right: those that the classifier is right on.
        wrong: those that it is wrong on.
        note: why there are none; empty if there are.
    """

    tables: str
    right: list[ListedImage]
    wrong: list[ListedImage]
    note: str


def nearest_images(workspace: Workspace, row: int) -> NearestImages:
    """Return the images that look most like a sample."""
    samples = workspace.samples
    tables, note = workspace.tables_key, "There are no embeddings to compare images with."
    if CLIP in samples.spaces:
        embedding = samples.embeddings(CLIP, np.array([row]))[0]
        if np.isfinite(embedding).all():
            return NearestImages(
                tables=tables,
                right=_nearest(workspace, embedding, _are(workspace, RIGHT, row)),
                wrong=_nearest(workspace, embedding, _are(workspace, WRONG, row)),
                note="",
            )
        note = "This image has no embedding to compare with."
    return NearestImages(tables=tables, right=[], wrong=[], note=note)


def _are(workspace: Workspace, result: int, but: int) -> BoolArray:
    """Return which rows of the data set have a result and may be looked at, without one [n]."""
    seen = visible_samples(workspace)
    found = np.zeros(len(workspace.samples.dataset), dtype=np.bool_)
    found[seen.rows[seen.results == result]] = True
    found[but] = False
    return found


def _nearest(workspace: Workspace, embedding: FloatArray, within: BoolArray) -> list[ListedImage]:
    if not within.any():
        return []
    shards = EmbeddingShards([workspace.samples.space(CLIP).embeddings])
    (found,) = nearest_rows(shards, embedding, N_NEAREST, within=within)
    return list_images(workspace, found.rows, [float(score) for score in found.scores])
