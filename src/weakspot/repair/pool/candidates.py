"""The pool as strategies see it: labels hidden, in an order that does not depend on the table."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.dataset import NO_LABEL, Task
from weakspot.core.errors import NotEnoughDataError
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.core.training_sets import RepairMaterial
from weakspot.repair.pool.class_guess import ClassGuess

Within = Literal["pool", "slices"]


@dataclass(frozen=True, kw_only=True, eq=False)
class OpenPool:
    """Pool samples that may be chosen.

    Args:
        samples: the data set without the labels of pool samples, so that no choice can depend on them.
        rows: the rows that may be chosen, ordered by sample id; of the same picture only one, and none that is trained on already.
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
            f"The strategy {strategy} needs a pool.", where="[repair]", fix="Give samples with the split `pool`; labels can follow."
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
    hidden = np.full(len(material.pool), NO_LABEL) if dataset.task is Task.SINGLE_LABEL else [None] * len(material.pool)
    samples = replace(material.pool, dataset=dataset.with_labels(material.pool.rows, hidden))
    guess = ClassGuess(samples=samples, training=by_id(samples, material.labelled), assistants=material.assistants)
    return OpenPool(samples=samples, rows=rows, material=material, strategy=strategy, guess=guess)


def by_id(samples: SampleSet, rows: IntArray) -> IntArray:
    """Return rows ordered by sample id, so that nothing depends on the order of the table, not even the last digit of a sum."""
    return rows[np.argsort(np.array(samples.dataset.sample_ids(rows), dtype=np.str_), kind="stable")]


def nothing_inside(strategy: str, n_pool: int) -> NotEnoughDataError:
    """Return the error for a pool without any sample of the slices."""
    return NotEnoughDataError(
        f"None of the {n_pool} pool samples is inside a slice.",
        where=strategy,
        fix="Give a larger pool, or choose a strategy over the whole pool.",
    )


def _distinct(pool: SampleSet, training: IntArray) -> IntArray:
    """Return pool rows by id without pictures that are trained on already, and the first of those that hold the same picture."""
    rows = by_id(pool, pool.rows)
    dataset = pool.dataset
    seen = set(dataset.content_hashes(training))
    is_new: BoolArray = np.zeros(len(rows), dtype=np.bool_)
    for place, content in enumerate(dataset.content_hashes(rows)):
        is_new[place] = content not in seen
        seen.add(content)
    return rows[is_new]
