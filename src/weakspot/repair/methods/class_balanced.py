"""Retraining with all classes in balance."""

from collections.abc import Sequence
from dataclasses import dataclass

from weakspot.core.slices import FailureSlice
from weakspot.core.training_sets import (
    RepairMaterial,
    TrainingSelection,
    class_balanced_weights,
    named,
    occurring_classes,
)


@dataclass(frozen=True, kw_only=True)
class ClassBalancedRepairer:
    """Makes every class weigh the same, however many samples it has; slices are not looked at.

    For multi-label tasks a sample gets the mean of what its labels ask for, and samples without any label are a class of their own.

    >>> from weakspot.testing.examples import repair_example
    >>> slices, material = repair_example()
    >>> ClassBalancedRepairer().select(slices, material).note
    'Every class weighs the same: 4 classes, 404 samples.'
    """

    is_baseline = False

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
