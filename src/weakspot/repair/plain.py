"""Baseline: retraining alone, every sample counting the same."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.repairs import TrainingSelection
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice


@dataclass(frozen=True, kw_only=True)
class PlainRepairer:
    """Weighs nothing: shows what retraining the last layer does by itself."""

    is_baseline = True

    def select(
        self, slices: Sequence[FailureSlice], *, training: SampleSet, pool: SampleSet | None, budget: int, seed: int
    ) -> TrainingSelection:
        """Return all labelled training rows with weight one."""
        del slices, pool, budget, seed
        rows = training.rows[training.dataset.is_labelled[training.rows]]
        note = f"The last layer is retrained on the same {len(rows)} samples without weights."
        return TrainingSelection(rows=rows, weights=np.ones(len(rows)), note=note)
