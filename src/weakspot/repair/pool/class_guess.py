"""Whether unlabelled samples may be of a class, asked of the classifier and of the space shared with words."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from weakspot.core.arrays import BoolArray, FloatArray, IntArray, unit_rows
from weakspot.core.assistants import Assistants
from weakspot.core.dataset import Task
from weakspot.core.failures import Side, predicted_labels
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.lexicon.captions import plain_caption

JOINT = "joint"
N_LIKELIEST = 2
CHUNK_ROWS = 8_192
MOST_ASKED = 10_000
LIKELY, NEAREST = 1, 2


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassGuess:
    """Judges the class of samples by two witnesses, and the witnesses by the labelled training samples.

    One witness is the classifier: the class is among the two that it finds most probable (or, multi-label, it predicts the label).
    Members of a slice fail, so the most probable class alone would leave out the very samples that are looked for. The other is the
    joint space: the class name is the nearest of all class names. What both say, or one alone, is believed in the order in which
    it is right among training samples, and not at all if it is right no more often than chance.

    Args:
        samples: the data set, with labels of training samples only.
        training: labelled training rows, in an order that does not depend on the table.
        assistants: who can embed class names.
    """

    samples: SampleSet
    training: IntArray
    assistants: Assistants

    def possible(self, found: FailureSlice, rows: IntArray, enough: int) -> BoolArray:
        """Return which rows may be of the class of a slice [len(rows)]; the most believable, until there are enough.

        Every row is where no witness can be asked or believed, and for slices of samples that lack a label: most samples lack it.
        """
        code = self.samples.dataset.class_code(found.class_name)
        believable = [] if found.side is Side.ABSENT else self._believable(code)
        if not believable:
            return np.ones(len(rows), dtype=np.bool_)
        said = self._testimony(rows, code)
        believed: BoolArray = np.zeros(len(rows), dtype=np.bool_)
        for testimony in believable:
            if believed.sum() < enough:
                believed |= said == testimony
        return believed

    def _believable(self, code: int) -> list[int]:
        """Return what speaks for the class, most often right first; what was never heard among training samples comes last."""
        known = (LIKELY if self.samples.dataset.probabilities is not None else 0) | (NEAREST if self._names is not None else 0)
        kinds = [kind for kind in (LIKELY | NEAREST, NEAREST, LIKELY) if kind & known == kind]
        rows = self.training[:: max(1, -(-len(self.training) // MOST_ASKED))]
        truth = self._truth(rows, code)
        if not truth.any():
            return kinds
        said = self._testimony(rows, code)
        chance = float(truth.mean())
        rates = {kind: (float(truth[said == kind].sum()) + chance) / (float((said == kind).sum()) + 1.0) for kind in kinds}
        believable = sorted((kind for kind in kinds if rates[kind] > chance), key=lambda kind: -rates[kind])
        return [*believable, *(kind for kind in kinds if kind not in said)] if believable else []

    def _truth(self, rows: IntArray, code: int) -> BoolArray:
        dataset = self.samples.dataset
        is_single = dataset.task is Task.SINGLE_LABEL
        return np.asarray(dataset.labels[rows] == code if is_single else dataset.label_matrix[rows, code], dtype=np.bool_)

    def _testimony(self, rows: IntArray, code: int) -> IntArray:
        said = np.zeros(len(rows), dtype=np.int64)
        for start in range(0, len(rows), CHUNK_ROWS):
            part = slice(start, start + CHUNK_ROWS)
            if self.samples.dataset.probabilities is not None:
                said[part] += LIKELY * _is_likely(self.samples, rows[part], code)
            if self._names is not None:
                said[part] += NEAREST * _is_nearest(self.samples.vectors(JOINT, rows[part]), self._names, code)
        return said

    @cached_property
    def _names(self) -> FloatArray | None:
        """Return a unit vector for every class name [c, d], None if names cannot be compared with pictures."""
        space, embed_texts = self.samples.spaces.get(JOINT), self.assistants.embed_texts
        if embed_texts is None or space is None or not space.has_text:
            return None
        return unit_rows(embed_texts([plain_caption(name).phrase for name in self.samples.dataset.class_names]))


def _is_likely(samples: SampleSet, rows: IntArray, code: int) -> BoolArray:
    dataset = samples.dataset
    probabilities = np.nan_to_num(np.asarray(dataset.probabilities)[rows], nan=-1.0)
    own = probabilities[:, code : code + 1]
    n_ahead = (probabilities > own).sum(axis=1) + (probabilities[:, :code] == own).sum(axis=1)
    likely = (n_ahead < N_LIKELIEST) & (own[:, 0] >= 0)
    if dataset.task is Task.MULTI_LABEL:
        likely |= predicted_labels(dataset, rows)[:, code]
    return np.asarray(likely, dtype=np.bool_)


def _is_nearest(vectors: FloatArray, names: FloatArray, code: int) -> BoolArray:
    is_known: BoolArray = np.asarray(np.isfinite(vectors).all(axis=1), dtype=np.bool_)
    similarities = unit_rows(np.where(is_known[:, None], vectors, 0.0)) @ names.T
    return np.asarray(is_known & (similarities.argmax(axis=1) == code), dtype=np.bool_)
