"""Retraining with given groups in balance, by leaving samples out or by weights: references that need group labels."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.bounds import Count, check_bounds
from weakspot.core.dataset import Dataset
from weakspot.core.errors import ConfigError, NotEnoughDataError
from weakspot.core.seeding import generator
from weakspot.core.slices import FailureSlice
from weakspot.core.training_sets import (
    RepairMaterial,
    TrainingSelection,
    named,
    occurring_classes,
    positions_by,
    value_groups,
)


@dataclass(frozen=True, kw_only=True)
class SubsampleRepairer:
    """Trains on as many samples of every group as the smallest has, drawn by lot; a group is a class and a value of a column.

    After Kirichenko, Izmailov and Wilson, *Last Layer Re-Training is Sufficient for Robustness to Spurious Correlations* (2023).
    Slices are not looked at; samples without a value are left out.

    Args:
        column: metadata column whose values, with the class, are the groups.
        least: no group is cut below this many samples, so that a group of one does not shrink all others to one; smaller groups
            stay whole.

    >>> from weakspot.testing.examples import repair_example
    >>> slices, material = repair_example()
    >>> SubsampleRepairer(column="colour").select(slices, material).note
    '10 samples of each group by class and colour: 32 groups, 7 of them smaller, 296 samples.'
    """

    column: str
    least: Count = 10

    is_baseline = False

    def __post_init__(self) -> None:
        """Refuse settings that cannot mean anything."""
        _refuse_no_column(self.column)
        check_bounds(self)

    def select(self, slices: Sequence[FailureSlice], material: RepairMaterial) -> TrainingSelection:
        del slices
        dataset, rows = material.training.dataset, material.labelled
        groups = _groups(dataset, rows, self.column)
        size = max(min(map(len, groups.values())), self.least)
        kept = np.sort(
            np.concatenate(
                [
                    self._drawn(dataset, group, size, material.seed, name)
                    for name, group in groups.items()
                ]
            )
        )
        n_smaller = sum(len(group) < size for group in groups.values())
        smaller = f", {n_smaller} of them smaller" if n_smaller else ""
        note = f"{size} samples of each group by class and {self.column}: {len(groups)} groups{smaller}, {len(kept)} samples."
        return TrainingSelection(rows=kept, weights=np.ones(len(kept)), note=note)

    def _drawn(
        self, dataset: Dataset, group: IntArray, size: int, seed: int, name: str
    ) -> IntArray:
        if len(group) <= size:
            return group
        by_id = group[np.argsort(dataset.sample_ids(group), kind="stable")]
        return generator(seed, "dfr-subsample", name).permutation(by_id)[:size]


@dataclass(frozen=True, kw_only=True)
class UpsampleRepairer:
    """Makes every group weigh the same; a group is a class and a value of a column.

    After Kirichenko, Izmailov and Wilson, *Last Layer Re-Training is Sufficient for Robustness to Spurious Correlations* (2023).
    Slices are not looked at; samples without a value are left out.

    Args:
        column: metadata column whose values, with the class, are the groups.

    >>> from weakspot.testing.examples import repair_example
    >>> slices, material = repair_example()
    >>> UpsampleRepairer(column="colour").select(slices, material).note
    'Every group by class and colour weighs the same: 32 groups, 404 samples.'
    """

    column: str

    is_baseline = False

    def __post_init__(self) -> None:
        """Refuse settings that cannot mean anything."""
        _refuse_no_column(self.column)

    def select(self, slices: Sequence[FailureSlice], material: RepairMaterial) -> TrainingSelection:
        """Return the labelled training rows that are in a group, weighted; the seed has no influence."""
        del slices
        groups = _groups(material.training.dataset, material.labelled, self.column)
        kept = np.sort(np.concatenate(list(groups.values())))
        weights = np.ones(len(kept))
        for group in groups.values():
            weights[np.searchsorted(kept, group)] = len(kept) / (len(groups) * len(group))
        note = f"Every group by class and {self.column} weighs the same: {len(groups)} groups, {len(kept)} samples."
        return TrainingSelection(rows=kept, weights=weights, note=note)


def _refuse_no_column(column: str) -> None:
    if not column:
        raise ConfigError("The setting column must name a metadata column.", given=column)


def _groups(dataset: Dataset, rows: IntArray, column: str) -> dict[str, IntArray]:
    """Return the rows of every group by its name.

    Raises:
        NotEnoughDataError: if a class that can be trained on would be lost, because none of its samples has a value.
    """
    codes, names = value_groups(dataset, rows, column)
    is_lost = occurring_classes(dataset, rows) & ~occurring_classes(dataset, rows[codes >= 0])
    if is_lost.any():
        lost = [name for name, one in zip(dataset.class_names, is_lost, strict=True) if one]
        raise NotEnoughDataError(
            f"The metadata column {column!r} says nothing of a whole class, which could not be recognised any more.",
            given=named(lost),
            fix="Give values for some of its samples, or choose another column.",
        )
    return {names[code]: rows[places] for code, places in positions_by(codes).items()}
