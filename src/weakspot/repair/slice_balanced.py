"""Retraining with every slice and the rest of its class in balance."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.slices import FailureSlice
from weakspot.core.training_sets import RepairMaterial, TrainingSelection, class_parts, with_mean_one


@dataclass(frozen=True, kw_only=True)
class SliceBalancedRepairer:
    """Makes the members of a slice weigh as much as the rest of their class.

    After Lee, Lam, Vasconcelos, Bernstein and Finn, *Clarify: Improving Model Robustness With Natural Language Corrections* (2024).
    """

    is_baseline = False

    def select(self, slices: Sequence[FailureSlice], material: RepairMaterial) -> TrainingSelection:
        """Return all labelled training rows, weighted; the seed has no influence."""
        rows = material.labelled
        weights = np.ones(len(rows))
        n_members = 0
        for parts in class_parts(slices, material.training):
            n_members += sum(map(len, parts.inside))
            n_class = sum(map(len, parts.groups))
            for group in parts.groups:
                weights[np.searchsorted(rows, group)] *= n_class / (len(parts.groups) * len(group))
        note = f"Slice members weigh as much as the rest of their class: {n_members} of {len(rows)} samples are members."
        return TrainingSelection(rows=rows, weights=with_mean_one(weights), note=note)
