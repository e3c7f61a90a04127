"""Baseline: the same weights on the samples of the class that the classifier is least sure of."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from weakspot.core.arrays import DoubleArray, IntArray
from weakspot.core.errors import DataError
from weakspot.core.failures import Side
from weakspot.core.repairs import TrainingSelection, balanced_selection
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice


@dataclass(frozen=True, kw_only=True)
class ConfidenceRepairer:
    """Weighs as many samples of the class as the slice has members: those whose true label got the lowest probability."""

    is_baseline = True

    def select(
        self, slices: Sequence[FailureSlice], *, training: SampleSet, pool: SampleSet | None, budget: int, seed: int
    ) -> TrainingSelection:
        """Return all training rows and the least confident pool rows, weighted; the seed has no influence."""
        del seed
        chosen = balanced_selection(slices, training=training, pool=pool, budget=budget, rank=_doubt)
        return replace(chosen, note=f"As many samples of the class, least confident first, get the same weights: {chosen.note}")


def _doubt(found: FailureSlice, samples: SampleSet, rows: IntArray) -> DoubleArray:
    """Return one minus the probability of the truth; samples without probabilities come last."""
    dataset = samples.dataset
    if dataset.probabilities is None:
        raise DataError(
            "The confidence baseline needs probabilities.",
            fix="Give a classifier or probability columns, or leave this baseline out.",
        )
    said = np.asarray(dataset.probabilities[rows, dataset.class_code(found.class_name)], dtype=np.float64)
    return said if found.side is Side.ABSENT else 1.0 - said
