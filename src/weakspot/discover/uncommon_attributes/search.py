"""One search: which value of an axis every sample of a class is nearest to, and which failures may choose among values."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import BoolArray, FloatArray, IntArray, unit_rows
from weakspot.core.assistants import EmbedTexts
from weakspot.core.dataset import Dataset, Task
from weakspot.core.failures import ClassProblem, predicted_classes
from weakspot.lexicon.captions import Caption
from weakspot.lexicon.uncommon_vocabulary import Axis

SAME = 1.0 - 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class Search:
    """One class and one axis.

    Args:
        problem: the samples of the class that have a vector.
        axis: which kind of attribute.
        captions: of the values, and last the plain one, which stands for none of them.
        prototypes: their unit vectors [m, d].
        offsets: [m] subtracted from similarities.
        nearest: which caption every sample of the class is nearest to [n].
        seeds: failures [n] that choose the values.
    """

    problem: ClassProblem
    axis: Axis
    captions: tuple[Caption, ...]
    prototypes: FloatArray
    offsets: tuple[float, ...]
    nearest: IntArray
    seeds: BoolArray

    @property
    def n_values(self) -> int:
        """Return how many values there are, the plain caption not among them."""
        return len(self.captions) - 1

    @property
    def held_out(self) -> BoolArray:
        """Return the failures [n] that had no say in choosing."""
        return np.asarray(self.problem.failed & ~self.seeds)

    def nothing_found(self) -> str:
        """Return that no value was chosen."""
        n_none = int((self.nearest[self.seeds] == self.n_values).sum())
        return (
            f"No uncommon {self.axis.name} is shared by failures: {n_none} of the {int(self.seeds.sum())} failures looked at show "
            f"none of {self.n_values} values, and no value is shown often enough."
        )


def searched(  # noqa: PLR0913 - what one search needs
    problem: ClassProblem,
    vectors: FloatArray,
    axis: Axis,
    captions: Sequence[Caption],
    embed: EmbedTexts,
    *,
    centre: bool,
    seeds: BoolArray,
) -> Search:
    """Put every sample to its nearest caption.

    Args:
        problem: the samples of the class that have a vector.
        vectors: their unit vectors [n, d].
        axis: which kind of attribute.
        captions: of the values, and last the plain one.
        embed: phrases to vectors.
        centre: whether each caption's mean similarity is subtracted first.
        seeds: failures [n] that choose.
    """
    embedded = unit_rows(np.asarray(embed([caption.phrase for caption in captions]), dtype=np.float32))
    # The plain caption goes first here: a value that the encoder cannot tell from it says nothing.
    kept = np.sort((_different(np.roll(embedded, 1, axis=0)) - 1) % len(captions))
    prototypes = embedded[kept]
    similarities = vectors @ prototypes.T
    offsets = similarities.mean(axis=0) if centre else np.zeros(len(kept), dtype=np.float32)
    return Search(
        problem=problem,
        axis=axis,
        captions=tuple(captions[place] for place in kept),
        prototypes=prototypes,
        offsets=tuple(float(offset) for offset in offsets) if centre else (),
        nearest=np.asarray(np.argmax(similarities - offsets, axis=1), dtype=np.int64),
        seeds=seeds,
    )


def seed_failures(dataset: Dataset, problem: ClassProblem, share: float, draws: np.random.Generator) -> BoolArray:
    """Return which samples [n] are the failures that choose: a random share, alike in what they were taken for."""
    failures = np.flatnonzero(problem.failed)
    taken_for = np.zeros(len(failures), dtype=np.int64)
    if dataset.task is Task.SINGLE_LABEL:
        taken_for = predicted_classes(dataset, problem.rows[failures])
    order = np.lexsort((draws.random(len(failures)), taken_for))
    # Taking every so-manieth along the sorted strata keeps shares equal within each stratum and over all.
    steps = np.floor(np.arange(len(failures) + 1) * share + 0.5)
    chosen = np.zeros(len(problem.rows), dtype=np.bool_)
    chosen[failures[order[np.diff(steps) > 0]]] = True
    return chosen


def _different(vectors: FloatArray) -> IntArray:
    """Return the positions of vectors [m, d] that are not the same as an earlier one."""
    same = np.triu(vectors @ vectors.T >= SAME, k=1)
    return np.flatnonzero(~same.any(axis=0))
