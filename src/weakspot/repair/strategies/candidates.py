"""The pool as strategies see it: labels hidden, in an order that does not depend on the table.

Also what the strategies that add samples of it have in common.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, FloatArray, IntArray, unit_rows
from weakspot.core.assistants import Assistants
from weakspot.core.bounds import check_bounds
from weakspot.core.dataset import NO_LABEL, Task
from weakspot.core.errors import NotEnoughDataError
from weakspot.core.failures import Side, predicted_labels
from weakspot.core.heads import RepairMaterial, TrainingSelection, balanced_weights, class_parts
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.words.captions import plain_caption

CLIP = "clip"
N_LIKELIEST = 2
CHUNK_ROWS = 8_192
MAX_ASKED = 10_000
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
        testimonies = self._testimony(rows, code)
        believed: BoolArray = np.zeros(len(rows), dtype=np.bool_)
        for testimony in believable:
            if believed.sum() < enough:
                believed |= testimonies == testimony
        return believed

    def _believable(self, code: int) -> list[int]:
        """Return what speaks for the class, most often right first; what was never heard among training samples comes last."""
        known = (LIKELY if self.samples.dataset.probabilities is not None else 0) | (
            NEAREST if self._names is not None else 0
        )
        kinds = [kind for kind in (LIKELY | NEAREST, NEAREST, LIKELY) if kind & known == kind]
        rows = self.training[:: max(1, -(-len(self.training) // MAX_ASKED))]
        truth = self._truth(rows, code)
        if not truth.any():
            return kinds
        testimonies = self._testimony(rows, code)
        chance = float(truth.mean())
        rates = {
            kind: (float(truth[testimonies == kind].sum()) + chance)
            / (float((testimonies == kind).sum()) + 1.0)
            for kind in kinds
        }
        believable = sorted(
            (kind for kind in kinds if rates[kind] > chance), key=lambda kind: -rates[kind]
        )
        return (
            [*believable, *(kind for kind in kinds if kind not in testimonies)]
            if believable
            else []
        )

    def _truth(self, rows: IntArray, code: int) -> BoolArray:
        dataset = self.samples.dataset
        is_single = dataset.task is Task.SINGLE_LABEL
        return np.asarray(
            dataset.labels[rows] == code if is_single else dataset.label_matrix[rows, code],
            dtype=np.bool_,
        )

    def _testimony(self, rows: IntArray, code: int) -> IntArray:
        testimonies = np.zeros(len(rows), dtype=np.int64)
        for start in range(0, len(rows), CHUNK_ROWS):
            part = slice(start, start + CHUNK_ROWS)
            if self.samples.dataset.probabilities is not None:
                testimonies[part] += LIKELY * _is_likely(self.samples, rows[part], code)
            if self._names is not None:
                testimonies[part] += NEAREST * _is_nearest(
                    self.samples.embeddings(CLIP, rows[part]), self._names, code
                )
        return testimonies

    @cached_property
    def _names(self) -> FloatArray | None:
        """Return a unit vector for every class name [c, d], None if names cannot be compared with images."""
        space, embed_texts = self.samples.spaces.get(CLIP), self.assistants.embed_texts
        if embed_texts is None or space is None or not space.has_text:
            return None
        return unit_rows(
            embed_texts([plain_caption(name).phrase for name in self.samples.dataset.class_names])
        )


def _is_likely(samples: SampleSet, rows: IntArray, code: int) -> BoolArray:
    dataset = samples.dataset
    probabilities = np.nan_to_num(np.asarray(dataset.probabilities)[rows], nan=-1.0)
    own = probabilities[:, code : code + 1]
    n_ahead = (probabilities > own).sum(axis=1) + (probabilities[:, :code] == own).sum(axis=1)
    likely = (n_ahead < N_LIKELIEST) & (own[:, 0] >= 0)
    if dataset.task is Task.MULTI_LABEL:
        likely |= predicted_labels(dataset, rows)[:, code]
    return np.asarray(likely, dtype=np.bool_)


def _is_nearest(embeddings: FloatArray, names: FloatArray, code: int) -> BoolArray:
    is_known: BoolArray = np.asarray(np.isfinite(embeddings).all(axis=1), dtype=np.bool_)
    similarities = unit_rows(np.where(is_known[:, None], embeddings, 0.0)) @ names.T
    return np.asarray(is_known & (similarities.argmax(axis=1) == code), dtype=np.bool_)


Within = Literal["pool", "slices"]


@dataclass(frozen=True, kw_only=True, eq=False)
class OpenPool:
    """Pool samples that may be chosen.

    Args:
        samples: the data set without the labels of pool samples, so that no choice can depend on them.
        rows: the rows that may be chosen, ordered by sample id; of the same image only one, and none that is trained on already.
        material: what the strategy was given.
        strategy: its registered name, for messages.
        guess: judges classes without labels.
    """

    samples: SampleSet
    rows: IntArray
    material: RepairMaterial
    strategy: str
    guess: ClassGuess

    @property
    def budget(self) -> int:
        """Return how many may be chosen."""
        return self.material.budget

    def members(self, found: FailureSlice) -> IntArray:
        """Return the rows inside a slice, judged without labels: the rule holds, and the class may be the slice's."""
        inside = self.rows[found.rule.members(self.samples, self.rows)]
        return inside[self.guess.possible(found, inside, self.budget)]

    def candidates(self, slices: Sequence[FailureSlice], within: Within) -> IntArray:
        """Return the whole pool, or only what is inside one of the slices, ordered by sample id."""
        if within == "pool":
            return self.rows
        listed = [self.members(found) for found in slices]
        inside = self.rows[np.isin(self.rows, np.concatenate(listed))] if listed else self.rows[:0]
        if slices and not len(inside):
            raise nothing_inside(self.strategy, len(self.rows))
        return inside


def open_pool(material: RepairMaterial, strategy: str) -> OpenPool:
    """Return the pool of the material.

    Raises:
        NotEnoughDataError: if there is no pool, or nothing may be taken from it.
    """
    if material.pool is None or not len(material.pool):
        raise NotEnoughDataError(
            f"The strategy {strategy} needs a pool.",
            where="[repair]",
            fix="Give samples with the split `pool`; labels can follow.",
        )
    if material.budget < 1:
        raise NotEnoughDataError(
            f"The strategy {strategy} needs a budget: how many pool samples may be added.",
            where="[repair]",
            given=material.budget,
            fix="Set [repair] budget to a positive number.",
        )
    rows = _distinct(material.pool, material.labelled)
    dataset = material.pool.dataset
    hidden = (
        np.full(len(material.pool), NO_LABEL)
        if dataset.task is Task.SINGLE_LABEL
        else [None] * len(material.pool)
    )
    samples = replace(material.pool, dataset=dataset.with_labels(material.pool.rows, hidden))
    guess = ClassGuess(
        samples=samples, training=by_id(samples, material.labelled), assistants=material.assistants
    )
    return OpenPool(samples=samples, rows=rows, material=material, strategy=strategy, guess=guess)


def by_id(samples: SampleSet, rows: IntArray) -> IntArray:
    """Return rows ordered by sample id, so that nothing depends on the order of the table, not even the last digit of a sum."""
    return rows[
        np.argsort(np.array(samples.dataset.sample_ids(rows), dtype=np.str_), kind="stable")
    ]


def nothing_inside(strategy: str, n_pool: int) -> NotEnoughDataError:
    """Return the error for a pool without any sample of the slices."""
    return NotEnoughDataError(
        f"None of the {n_pool} pool samples is inside a slice.",
        where=strategy,
        fix="Give a larger pool, or choose a strategy over the whole pool.",
    )


def _distinct(pool: SampleSet, training: IntArray) -> IntArray:
    """Return pool rows by id without images that are trained on already, and the first of those that hold the same image."""
    rows = by_id(pool, pool.rows)
    dataset = pool.dataset
    seen = set(dataset.content_hashes(training))
    is_new: BoolArray = np.zeros(len(rows), dtype=np.bool_)
    for place, content in enumerate(dataset.content_hashes(rows)):
        is_new[place] = content not in seen
        seen.add(content)
    return rows[is_new]


Weighting = Literal["uniform", "balanced"]


def with_added(
    material: RepairMaterial,
    chosen: IntArray,
    how: str,
    *,
    slices: Sequence[FailureSlice] = (),
    weighting: Weighting = "uniform",
) -> TrainingSelection:
    """Return all labelled training rows and the chosen pool rows, ascending.

    Args:
        material: what was chosen from.
        chosen: pool rows, with or without a label.
        how: the words that follow "chosen" in the note.
        slices: for balanced weights.
        weighting: `uniform`, or `balanced`: the members of a slice, old and new, weigh as much as the rest of their class.
    """
    rows = np.union1d(material.labelled, chosen).astype(np.int64)
    n_open = int((~material.training.dataset.is_labelled[chosen]).sum())
    parts = [
        f"Pool samples added to the {len(material.labelled)} training samples: {len(chosen)}, chosen {how}."
    ]
    if weighting == "balanced":
        parts.append("Slice members, old and new, weigh as much as the rest of their class.")
    if n_open:
        parts.append(f"Of these wait for a label: {n_open}.")
    weights = _balance(material, rows, slices) if weighting == "balanced" else np.ones(len(rows))
    return TrainingSelection(rows=rows, weights=weights, note=" ".join(parts))


def _balance(
    material: RepairMaterial, rows: IntArray, slices: Sequence[FailureSlice]
) -> DoubleArray:
    """Return weights under which slices and the rest of their class are in balance; rows without a label count once."""
    cut = class_parts(slices, material.training.only(rows))
    return balanced_weights(
        np.ones(len(rows)),
        [[np.searchsorted(rows, group) for group in parts.groups] for parts in cut],
    )


@dataclass(frozen=True, kw_only=True)
class PoolScope:
    """What strategies have in common that can look at the whole pool or inside slices.

    Args:
        within: the whole `pool`, or only what is inside the `slices`.
    """

    within: Within = "pool"

    is_baseline = False

    def __post_init__(self) -> None:
        check_bounds(self)

    @property
    def place(self) -> str:
        return "inside the slices" if self.within == "slices" else "in the whole pool"
