"""Retraining with every slice and the rest of its class in balance."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.slices import FailureSlice
from weakspot.core.training_sets import (
    RepairMaterial,
    TrainingSelection,
    balanced_weights,
    class_balanced_weights,
    cut_by_slices,
    in_slices,
)


@dataclass(frozen=True, kw_only=True)
class SliceBalancedRepairer:
    """Makes the members of a slice weigh as much as the rest of their class; several slices and the rest share it equally.

    After Lee, Lam, Vasconcelos, Bernstein and Finn, *Clarify: Improving Model Robustness With Natural Language Corrections* (2024).

    Args:
        is_class_balanced: whether classes weigh the same, too, as they do in the paper when all of them have a slice; otherwise
            every class keeps its share.

    >>> from weakspot.testing.examples import repair_example
    >>> slices, material = repair_example()
    >>> SliceBalancedRepairer().select(slices, material).note
    'Slices weigh as much as the rest of their class: 27 of 404 samples are in slices.'
    """

    is_class_balanced: bool = False

    is_baseline = False

    def select(self, slices: Sequence[FailureSlice], material: RepairMaterial) -> TrainingSelection:
        """Return all labelled training rows, weighted; the seed has no influence."""
        rows = material.labelled
        parts, remark = cut_by_slices(slices, material.training)
        base = (
            class_balanced_weights(material.training.dataset, rows)
            if self.is_class_balanced
            else np.ones(len(rows))
        )
        partitions = [[np.searchsorted(rows, group) for group in part.groups] for part in parts]
        n_members = len(in_slices(parts))
        classes = " and classes weigh the same" if self.is_class_balanced else ""
        counts = f"{n_members} of {len(rows)} samples are in slices."
        note = f"Slices weigh as much as the rest of their class{classes}: {counts}{remark}"
        return TrainingSelection(rows=rows, weights=balanced_weights(base, partitions), note=note)
