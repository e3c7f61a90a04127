"""Reference without training: the embedder's own text side as the classifier."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import DoubleArray, FloatArray, IntArray, unit_rows
from weakspot.core.assistants import EmbedTexts
from weakspot.core.dataset import Task
from weakspot.core.errors import DataError, UnavailableError
from weakspot.core.failures import Side
from weakspot.core.slices import FailureSlice
from weakspot.lexicon.captions import counted, noun_of

TEMPLATES = (
    "a photo of {}",
    "a picture of {}",
    "an image that shows {}",
    "a snapshot of {}",
    "a close-up of {}",
)
ANYTHING = "a photo"
OPENING = "a photo of "
SCALE = 100.0
CHUNK_ROWS = 65_536


@dataclass(frozen=True, kw_only=True, eq=False)
class ZeroShot:
    """A classifier made of phrases: a sample belongs to the class of the phrase that is most similar to it.

    Args:
        phrases: what stands for each row of `embeddings`, for people.
        embeddings: unit vectors [m, d], each the mean over several templates.
        classes: class of each of them [m]; every class has at least one.
        anything: unit vector [d] of a photo of anything; a label of a multi-label task is there if it fits better than that.
        task: single-label or multi-label.
        scale: what similarities are multiplied by before they become probabilities, the inverse of a temperature.
    """

    phrases: tuple[str, ...]
    embeddings: FloatArray
    classes: IntArray
    anything: FloatArray
    task: Task = Task.SINGLE_LABEL
    scale: float = SCALE

    @property
    def note(self) -> str:
        """Return what it does, in a sentence."""
        n_classes = int(self.classes.max()) + 1
        groups = len(self.phrases) - n_classes
        further = f" and {groups} of slices" if groups else ""
        return f"Nothing is trained: the embedder compares images with phrases, {n_classes} of classes{further}."

    def probabilities(self, embeddings: FloatArray) -> FloatArray:
        """Return probabilities [n, c] of embeddings [n, d] of the same space; NaN where there is no embedding."""
        if (
            embeddings.ndim != self.embeddings.ndim
            or embeddings.shape[1] != self.embeddings.shape[1]
        ):
            raise DataError(
                "The samples have embeddings of another width than the phrases.",
                given=embeddings.shape,
                fix=f"Take the embeddings of the embedder that embeds the phrases, which have {self.embeddings.shape[1]} numbers.",
            )
        n_classes = int(self.classes.max()) + 1
        found = np.empty((len(embeddings), n_classes), dtype=np.float32)
        for start in range(0, len(embeddings), CHUNK_ROWS):
            found[start : start + CHUNK_ROWS] = self._of(
                unit_rows(embeddings[start : start + CHUNK_ROWS]), n_classes
            )
        return found

    def _of(self, samples: FloatArray, n_classes: int) -> DoubleArray:
        similarities = (samples @ self.embeddings.T).astype(np.float64)
        best = np.stack(
            [similarities[:, self.classes == code].max(axis=1) for code in range(n_classes)], axis=1
        )
        if self.task is Task.MULTI_LABEL:
            plain = (samples @ self.anything).astype(np.float64)
            return np.asarray(
                1.0 / (1.0 + np.exp(-self.scale * (best - plain[:, None]))), dtype=np.float64
            )
        powers = np.exp(self.scale * (best - best.max(axis=1, keepdims=True)))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True), dtype=np.float64)


def zero_shot(
    class_names: Sequence[str],
    embed_texts: EmbedTexts | None,
    *,
    slices: Sequence[FailureSlice] = (),
    task: Task = Task.SINGLE_LABEL,
) -> ZeroShot:
    """Return the classifier that needs no training: one phrase a class, and one more for every slice of it that has a name.

    Args:
        class_names: the classes, in the order of probability columns.
        embed_texts: phrases to unit vectors of the space that samples have embeddings in.
        slices: their best names are further phrases of their classes.
        task: single-label or multi-label.

    Raises:
        UnavailableError: if phrases cannot be embedded.
    """
    if embed_texts is None:
        raise UnavailableError(
            "The embedder has no text side, so classes cannot be told apart by their names.",
            fix="Choose an embedder with text, or learn its text side: weakspot lab align.",
        )
    things = [
        (code, counted(noun_of(name), noun_of(name))) for code, name in enumerate(class_names)
    ]
    things = list(dict.fromkeys([*things, *_groups(class_names, slices)]))
    return ZeroShot(
        phrases=tuple(TEMPLATES[0].format(thing) for _, thing in things),
        embeddings=_average([thing for _, thing in things], embed_texts),
        classes=np.array([code for code, _ in things], dtype=np.int64),
        anything=unit_rows(embed_texts([ANYTHING]))[0],
        task=task,
    )


def _groups(
    class_names: Sequence[str], slices: Sequence[FailureSlice]
) -> Iterator[tuple[int, str]]:
    """Yield class and thing of the best name of every slice; of samples that lack a label there is nothing to name."""
    for found in slices:
        name = found.name
        if name is not None and found.side is not Side.ABSENT and found.class_name in class_names:
            phrase = name.phrase.strip()
            thing = phrase[len(OPENING) :] if phrase.lower().startswith(OPENING) else phrase
            yield class_names.index(found.class_name), thing


def _average(things: Sequence[str], embed_texts: EmbedTexts) -> FloatArray:
    """Return one unit vector a thing [m, d]: the mean over all templates."""
    texts = [template.format(thing) for thing in things for template in TEMPLATES]
    embeddings = unit_rows(embed_texts(texts))
    return unit_rows(embeddings.reshape(len(things), len(TEMPLATES), -1).mean(axis=1))
