"""Baseline: the same weights on samples drawn at random from the class."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from weakspot.core.arrays import DoubleArray, IntArray
from weakspot.core.repairs import TrainingSelection, balanced_selection
from weakspot.core.samples import SampleSet
from weakspot.core.seeding import generator
from weakspot.core.slices import FailureSlice


@dataclass(frozen=True, kw_only=True)
class RandomRepairer:
    """Weighs as many samples of the class as the slice has members, whichever they are."""

    is_baseline = True

    def select(
        self, slices: Sequence[FailureSlice], *, training: SampleSet, pool: SampleSet | None, budget: int, seed: int
    ) -> TrainingSelection:
        """Return all training rows and as many random pool rows as the slice would add, weighted."""

        def shuffled(found: FailureSlice, samples: SampleSet, rows: IntArray) -> DoubleArray:
            ids = samples.dataset.sample_ids(rows)
            numbers = generator(seed, "random", found.slice_id).random(len(rows))
            return np.asarray(numbers[np.argsort(np.argsort(ids, kind="stable"), kind="stable")])

        chosen = balanced_selection(slices, training=training, pool=pool, budget=budget, rank=shuffled)
        return replace(chosen, note=f"As many samples of the class, drawn at random, get the same weights: {chosen.note}")
