"""Retraining in which training samples that the classifier gets wrong count more."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from weakspot.core.bounds import Bounds, check_bounds
from weakspot.core.errors import NotEnoughDataError
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.slices import FailureSlice
from weakspot.core.training_sets import RepairMaterial, TrainingSelection, with_mean_one


@dataclass(frozen=True, kw_only=True)
class JustTrainTwiceRepairer:
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

    is_baseline = False

    def __post_init__(self) -> None:
        check_bounds(self)

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
