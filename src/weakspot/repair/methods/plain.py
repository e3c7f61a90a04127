"""Baseline: retraining alone, every sample counting the same."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.slices import FailureSlice
from weakspot.core.training_sets import RepairMaterial, TrainingSelection


@dataclass(frozen=True, kw_only=True)
class PlainRepairer:
    """Weighs nothing: shows what retraining the last layer does by itself.

    >>> from weakspot.testing.examples import repair_example
    >>> slices, material = repair_example()
    >>> PlainRepairer().select(slices, material).note
    'The last layer is retrained on the same 404 samples without weights.'
    """

    is_baseline = True

    def select(self, slices: Sequence[FailureSlice], material: RepairMaterial) -> TrainingSelection:
        del slices
        rows = material.labelled
        note = f"The last layer is retrained on the same {len(rows)} samples without weights."
        return TrainingSelection(rows=rows, weights=np.ones(len(rows)), note=note)
