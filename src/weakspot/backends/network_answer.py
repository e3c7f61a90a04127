"""A network's raw answer to a classifier's output: settled once on a probe, then applied to every batch.

Images of noise, the same on every machine, that a model is tried on once when it is loaded.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from PIL import Image

from weakspot.backends.class_scores import (
    checked_features,
    checked_probabilities,
    head_explains,
    is_single_output,
    looks_like_probabilities,
    paired_head,
    paired_scores,
    probabilities_from,
)
from weakspot.core.arrays import AnyArray
from weakspot.core.dataset import Task
from weakspot.core.errors import ModelError
from weakspot.core.heads import Head
from weakspot.core.roles import ClassifierOutput
from weakspot.core.seeding import generator

N_IMAGES = 2


def probe_images(height: int, width: int) -> list[Image.Image]:
    """Return two images of noise with different brightness."""
    noise = generator(0, "model probe").integers(
        0, 128, size=(N_IMAGES, height, width, 3), dtype=np.uint8
    )
    return [Image.fromarray(pixels + np.uint8(100 * number)) for number, pixels in enumerate(noise)]


NOT_EXPLAINED = "the last linear layer does not explain the scores that the model gives"
_MATRIX = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class AnswerReader:
    """How the raw answers of one network are read.

    Args:
        kind: `logits` or `probabilities`.
        task: single-label or multi-label.
        class_names: the classes, or None.
        where: the model, for messages.
        is_single: whether the network gives one number for two classes.
        head: the last linear layer, checked against a probe.
        note: why there is no head, or None.
        n_classes: columns of the probabilities.
        n_features: columns of the features, None without.
    """

    kind: str
    task: Task
    class_names: tuple[str, ...] | None
    where: str
    is_single: bool = False
    head: Head | None = None
    note: str | None = None
    n_classes: int = 0
    n_features: int | None = None

    def empty(self) -> ClassifierOutput:
        features = None if self.n_features is None else np.zeros((0, self.n_features), np.float32)
        return ClassifierOutput(
            probabilities=np.zeros((0, self.n_classes), np.float32), features=features
        )

    def output(
        self, scores: AnyArray, features: AnyArray | None, *, n_rows: int
    ) -> ClassifierOutput:
        wide = paired_scores(scores, self.kind) if self.is_single else scores
        probabilities = checked_probabilities(
            probabilities_from(wide, self.kind, self.task),
            n_rows=n_rows,
            class_names=self.class_names,
            task=self.task,
            where=self.where,
        )
        return ClassifierOutput(
            probabilities=probabilities,
            features=checked_features(features, n_rows=n_rows, where=self.where),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Probe:
    """What a network said of the probe images.

    Args:
        scores: [n, c].
        features: [n, d] or None.
        head: the layer that is thought to be the last one, or None.
        note: why there is none.
    """

    scores: AnyArray
    features: AnyArray | None = None
    head: Head | None = None
    note: str | None = None


def settle(
    probe: Probe,
    *,
    kinds: Sequence[str],
    task: Task,
    class_names: tuple[str, ...] | None,
    where: str,
) -> AnswerReader:
    """Decide once what a network gives, and whether its last layer is what it seems.

    Args:
        probe: its answer to the probe images.
        kinds: what the scores can be, likeliest first; one entry when it is known.
        task: single-label or multi-label.
        class_names: the classes, or None.
        where: the model, for messages.

    Raises:
        ModelError: if the answer is no table with one column a class.
    """
    if probe.scores.ndim != _MATRIX:
        raise ModelError(
            "The model must give one row of scores an image.", where=where, given=probe.scores.shape
        )
    is_single = is_single_output(probe.scores.shape[1], class_names, task)
    kind = _kind_by_head(probe, kinds, is_single=is_single)
    head, note = probe.head, probe.note
    if head is not None and kind is None:
        head, note = None, NOT_EXPLAINED
    reader = AnswerReader(
        kind=kind or _kind_by_numbers(probe.scores, kinds, task, is_single=is_single),
        task=task,
        class_names=class_names,
        where=where,
        is_single=is_single,
        head=paired_head(head) if head is not None and is_single else head,
        note=note,
    )
    answer = reader.output(probe.scores, probe.features, n_rows=len(probe.scores))
    n_features = None if answer.features is None else answer.features.shape[1]
    return replace(reader, n_classes=answer.probabilities.shape[1], n_features=n_features)


def _kind_by_head(probe: Probe, kinds: Sequence[str], *, is_single: bool) -> str | None:
    if probe.head is None or probe.features is None:
        return None
    head = paired_head(probe.head) if is_single else probe.head
    for kind in kinds:
        scores = paired_scores(probe.scores, kind) if is_single else probe.scores
        if head_explains(head, probe.features, scores, kind):
            return kind
    return None


def _kind_by_numbers(scores: AnyArray, kinds: Sequence[str], task: Task, *, is_single: bool) -> str:
    if len(kinds) == 1:
        return kinds[0]
    return (
        "probabilities"
        if looks_like_probabilities(scores, Task.MULTI_LABEL if is_single else task)
        else "logits"
    )
