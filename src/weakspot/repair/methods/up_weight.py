"""Retraining in which the members of slices count more."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from weakspot.core.arrays import DoubleArray, IntArray
from weakspot.core.bounds import Bounds, check_bounds
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.core.training_sets import (
    RepairMaterial,
    TrainingSelection,
    cut_by_slices,
    in_slices,
    with_mean_one,
)


@dataclass(frozen=True, kw_only=True)
class UpWeightRepairer:
    """Multiplies the weight of the members of a slice, in its class, by a factor; who is in several slices is multiplied once.

    After Jain, Lawrence, Moitra and Madry, *Distilling Model Failures as Directions in Latent Space* (2023).

    Args:
        factor: how many times a member counts, at least 1.
        is_graded: whether the factor grows with depth, from 1 for the shallowest member of a slice to `factor` for the deepest;
            members that all have one score get the whole factor.

    >>> from weakspot.testing.examples import repair_example
    >>> slices, material = repair_example()
    >>> UpWeightRepairer(factor=3.0).select(slices, material).note
    'Members of slices count 3 times: 27 of 404 samples.'
    """

    factor: Annotated[float, Bounds(ge=1)] = 2.0
    is_graded: bool = False

    is_baseline = False

    def __post_init__(self) -> None:
        check_bounds(self)

    def select(self, slices: Sequence[FailureSlice], material: RepairMaterial) -> TrainingSelection:
        """Return all labelled training rows, weighted; the seed has no influence."""
        rows, training = material.labelled, material.training
        parts, remark = cut_by_slices(slices, training)
        weights = np.ones(len(rows))
        for found in slices:
            members = found.members(training, found.class_rows(training))
            depth = _depth(found, training, members) if self.is_graded else np.ones(len(members))
            places = np.searchsorted(rows, members)
            weights[places] = np.maximum(weights[places], 1.0 + (self.factor - 1.0) * depth)
        how = (
            f"up to {self.factor:g} times, the deeper the more"
            if self.is_graded
            else f"{self.factor:g} times"
        )
        note = f"Members of slices count {how}: {len(in_slices(parts))} of {len(rows)} samples.{remark}"
        return TrainingSelection(rows=rows, weights=with_mean_one(weights), note=note)


def _depth(found: FailureSlice, samples: SampleSet, members: IntArray) -> DoubleArray:
    """Return how deep members lie, 0 for the shallowest to 1 for the deepest; all 1 where no score tells them apart."""
    scores = found.rule.scores(samples, members)
    spread = float(np.ptp(scores)) if len(scores) else 0.0
    return (
        np.asarray((scores - scores.min()) / spread, dtype=np.float64)
        if spread > 0
        else np.ones(len(members))
    )
