"""Where the classifier looks: how its answer changes when a patch of the image is covered.

Every model that answers images can be asked so. It is this classifier's answer to covered patches, not proof of what it uses: a
patch may matter only together with another, and a covered image is one that it never saw.

The work is done a little with every request, so that nobody waits for an image that was left behind.
"""

import time
from dataclasses import dataclass, field

import numpy as np
from PIL import Image

from weakspot.core.arrays import FloatArray
from weakspot.core.dataset import Task
from weakspot.core.errors import WeakspotError
from weakspot.media.images import decode_image
from weakspot.media.locations import read_location
from weakspot.web.services.samples.asking import (
    classify_images,
    lock_of_models,
    with_classifier,
)
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace

CELLS = 10
COVERED = 2
"""A patch covers so many cells each way, and begins at every cell: each cell is covered by several patches."""
BATCH = 11
PATIENCE_SECONDS = 0.6
MOST_KEPT = 32
LARGEST_SIDE = 1024


class HeatOfClass(View):
    """How much the probability of a class falls where a patch is covered.

    Args:
        class_name: the class.
        probability: of the whole image.
        heat: rows of cells, each the mean fall over the patches that cover it; below 0 where covering raises it.
    """

    class_name: str
    probability: float
    heat: list[list[float]]


class HeatView(View):
    """A heat map, or how far it is.

    Args:
        done: patches that were covered so far.
        total: how many there are.
        maps: of the class that is predicted and, if it is another, of the true one; empty until all patches are done.
    """

    done: int
    total: int
    maps: tuple[HeatOfClass, ...] = ()


@dataclass
class Occlusion:
    """The covered images of one sample, as far as they were asked about.

    Args:
        image: the whole one.
        answers: probabilities [k, c] of the whole image, then of the covered ones, in the order of `patches`.
    """

    image: Image.Image
    answers: list[FloatArray] = field(default_factory=list)

    @property
    def total(self) -> int:
        return 1 + len(patches())

    @property
    def is_done(self) -> bool:
        return len(self.answers) >= self.total

    def following(self) -> list[Image.Image]:
        """Return the images that are asked about next; which ones share a batch never changes."""
        start = len(self.answers)
        return [self._covered(place) for place in range(start, min(start + BATCH, self.total))]

    def heat(self, code: int) -> FloatArray:
        """Return how much a class falls, by cell [CELLS, CELLS]."""
        whole = float(self.answers[0][code])
        summed, counted = np.zeros((CELLS, CELLS)), np.zeros((CELLS, CELLS))
        for (top, left), answer in zip(patches(), self.answers[1:], strict=True):
            here = slice(max(0, top), top + COVERED), slice(max(0, left), left + COVERED)
            summed[here] += whole - float(answer[code])
            counted[here] += 1
        fall: FloatArray = (summed / counted).astype(np.float32)
        return fall

    def _covered(self, place: int) -> Image.Image:
        if place == 0:
            return self.image
        top, left = patches()[place - 1]
        width, height = self.image.size
        box = (
            max(0, left) * width // CELLS,
            max(0, top) * height // CELLS,
            min(CELLS, left + COVERED) * width // CELLS,
            min(CELLS, top + COVERED) * height // CELLS,
        )
        grey = tuple(int(value) for value in np.asarray(self.image).reshape(-1, 3).mean(axis=0))
        covered = self.image.copy()
        covered.paste(grey, box)
        return covered


def patches() -> tuple[tuple[int, int], ...]:
    """Return the first cell of every patch; the outermost lie half outside, so that every cell is covered as often."""
    starts = range(1 - COVERED, CELLS)
    return tuple((top, left) for top in starts for left in starts)


def heat_map(
    workspace: Workspace, row: int, *, patience: float = PATIENCE_SECONDS
) -> HeatView | None:
    """Return the heat map of a sample, or how far it is after another little while; None if its image cannot be read.

    Raises:
        StoreError: if there is no classifier to ask.
    """
    prepared = with_classifier(workspace)
    kept = workspace.once("occlusions", dict[int, Occlusion])
    with lock_of_models(workspace):
        found = kept.get(row)
        if found is None:
            image = _image(workspace, row)
            if image is None:
                return None
            found = Occlusion(image=image)
            while len(kept) >= MOST_KEPT:
                kept.pop(next(iter(kept)), None)
            kept[row] = found
        start = time.monotonic()
        while not found.is_done:
            found.answers.extend(classify_images(prepared, found.following()))
            if time.monotonic() - start >= patience:
                break
    if not found.is_done:
        return HeatView(done=len(found.answers), total=found.total)
    return HeatView(done=found.total, total=found.total, maps=_maps(workspace, row, found))


def _maps(workspace: Workspace, row: int, found: Occlusion) -> tuple[HeatOfClass, ...]:
    dataset = workspace.samples.dataset
    codes = [int(np.argmax(found.answers[0]))]
    if dataset.task is Task.MULTI_LABEL:
        codes += np.flatnonzero(dataset.label_matrix[row]).tolist()
    elif dataset.is_labelled[row]:
        codes.append(int(dataset.labels[row]))
    return tuple(
        HeatOfClass(
            class_name=dataset.class_names[code],
            probability=float(found.answers[0][code]),
            heat=found.heat(code).tolist(),
        )
        for code in dict.fromkeys(codes)
    )


def _image(workspace: Workspace, row: int) -> Image.Image | None:
    (location,) = workspace.samples.dataset.locations(np.array([row]))
    classifier = workspace.prepared.classifier
    if location is None or classifier is None:
        return None
    try:
        with workspace.project.reading():
            image = decode_image(read_location(location), image_side=classifier.image_side).image
    except WeakspotError:
        return None
    image.thumbnail((max(LARGEST_SIDE, classifier.image_side or 0),) * 2)
    return image.convert("RGB")
