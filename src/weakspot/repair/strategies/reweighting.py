"""Retraining in which samples count differently: by slice, by class, by what is misclassified, or all the same."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from weakspot.core.arrays import DoubleArray, IntArray
from weakspot.core.bounds import Bounds
from weakspot.core.errors import NotEnoughDataError
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.heads import (
    RepairMaterial,
    TrainingSelection,
    balanced_weights,
    class_balanced_weights,
    cut_by_slices,
    in_slices,
    named,
    occurring_classes,
    with_mean_one,
)
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.repair.strategies.strategy import Strategy


@dataclass(frozen=True, kw_only=True)
class PlainRepairer(Strategy):
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


@dataclass(frozen=True, kw_only=True)
class ClassBalancedRepairer(Strategy):
    """Makes every class weigh the same, however many samples it has; slices are not looked at.

    For multi-label tasks a sample gets the mean of what its labels ask for, and samples without any label are a class of their own.

    >>> from weakspot.testing.examples import repair_example
    >>> slices, material = repair_example()
    >>> ClassBalancedRepairer().select(slices, material).note
    'Every class weighs the same: 4 classes, 404 samples.'
    """

    def select(self, slices: Sequence[FailureSlice], material: RepairMaterial) -> TrainingSelection:
        """Return all labelled training rows, weighted by class; the seed has no influence."""
        del slices
        dataset, rows = material.training.dataset, material.labelled
        is_there = occurring_classes(dataset, rows)
        missing = [
            name for name, found in zip(dataset.class_names, is_there, strict=True) if not found
        ]
        remark = f" No training sample has the label {named(missing)}." if missing else ""
        note = f"Every class weighs the same: {int(is_there.sum())} classes, {len(rows)} samples.{remark}"
        return TrainingSelection(
            rows=rows, weights=class_balanced_weights(dataset, rows), note=note
        )


@dataclass(frozen=True, kw_only=True)
class SliceBalancedRepairer(Strategy):
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


@dataclass(frozen=True, kw_only=True)
class UpWeightRepairer(Strategy):
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


@dataclass(frozen=True, kw_only=True)
class JustTrainTwiceRepairer(Strategy):
    """Multiplies the weight of every training sample that the classifier gets wrong; slices play no part.

    After Liu, Haghgoo, Chen, Raghunathan, Koh, Sagawa, Liang and Finn, *Just Train Twice: Improving Group Robustness without Training Group
    Information* (2021). There the first training is stopped early; here what the finished classifier says of its training samples counts.

    Args:
        factor: how many times a sample that it gets wrong counts, at least 1.

    >>> from weakspot.testing.examples import repair_example
    >>> slices, material = repair_example()
    >>> JustTrainTwiceRepairer().select(slices, material).note
    'Training samples that the classifier gets wrong count 5 times: 22 of 404 samples.'
    """

    factor: Annotated[float, Bounds(ge=1)] = 5.0

    def select(self, slices: Sequence[FailureSlice], material: RepairMaterial) -> TrainingSelection:
        """Return all labelled training rows, weighted; neither slices nor the seed have an influence.

        Raises:
            NotEnoughDataError: if predictions of training samples are not known, or all of them are right.
        """
        del slices
        rows, dataset = material.labelled, material.training.dataset
        if not dataset.has_predictions or not len(rows):
            raise NotEnoughDataError(
                "What the classifier predicts for training samples is not known.",
                fix="Give predictions of training samples, too.",
            )
        wrong = np.zeros(len(rows), dtype=np.bool_)
        for problem in class_problems(dataset, rows, FailureCriterion()):
            wrong[np.searchsorted(rows, problem.rows[problem.failed])] = True
        n_wrong = int(wrong.sum())
        if not n_wrong:
            raise NotEnoughDataError(
                "The classifier is right on every training sample, or its predictions there are not known.",
                fix="Use a strategy that weighs slices.",
            )
        note = f"Training samples that the classifier gets wrong count {self.factor:g} times: {n_wrong} of {len(rows)} samples."
        weights = np.where(wrong, self.factor, 1.0)
        return TrainingSelection(rows=rows, weights=with_mean_one(weights), note=note)
