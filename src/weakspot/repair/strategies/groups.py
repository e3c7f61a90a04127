"""Retraining by groups: given groups in balance (DFR), or the group that is served worst (Group DRO, slices, classes)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import BoolArray, IntArray, generator
from weakspot.core.bounds import Count
from weakspot.core.dataset import Dataset
from weakspot.core.errors import NotEnoughDataError
from weakspot.core.heads import (
    RepairMaterial,
    TrainingSelection,
    WorstGroupObjective,
    class_groups,
    cut_by_slices,
    named,
    occurring_classes,
    positions_by,
    value_groups,
)
from weakspot.core.slices import FailureSlice
from weakspot.repair.strategies.strategy import ColumnStrategy, Strategy


@dataclass(frozen=True, kw_only=True)
class SubsampleRepairer(ColumnStrategy):
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

    least: Count = 10

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
class UpsampleRepairer(ColumnStrategy):
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


MIN_GROUPS = 2


@dataclass(frozen=True, kw_only=True)
class WorstSliceRepairer(Strategy):
    """Within every class that has slices, only the part with the largest loss counts: a slice, or the rest of the class.

    After Lee, Lam, Vasconcelos, Bernstein and Finn, *Clarify: Improving Model Robustness With Natural Language Corrections* (2024).
    Classes without slices keep their loss. In multi-label tasks a sample takes part in the first group_objective that wants it.

    >>> from weakspot.testing.examples import repair_example
    >>> slices, material = repair_example()
    >>> len(WorstSliceRepairer().select(slices, material).group_objectives)
    2
    """

    def select(self, slices: Sequence[FailureSlice], material: RepairMaterial) -> TrainingSelection:
        """Return all labelled training rows, with one group objective a class; the seed has no influence."""
        rows = material.labelled
        parts, remark = cut_by_slices(slices, material.training)
        is_free: BoolArray = np.ones(len(rows), dtype=np.bool_)
        group_objectives: list[WorstGroupObjective] = []
        crowded_out: list[str] = []
        for part in parts:
            places = [np.searchsorted(rows, group) for group in part.groups]
            groups = tuple(group[is_free[group]] for group in places if is_free[group].any())
            if len(groups) >= MIN_GROUPS:
                group_objectives.append(groups)
                is_free[np.concatenate(groups)] = False
            elif len(places) >= MIN_GROUPS:
                crowded_out.append(part.title)
        if crowded_out:
            remark += f" The samples of {named(crowded_out)} are in the group objectives of other labels already."
        counts = f"{len(group_objectives)} group objectives among {sum(map(len, group_objectives))} parts"
        note = f"Only the part of a class with the largest loss counts: {counts}.{remark}"
        return TrainingSelection(
            rows=rows,
            weights=np.ones(len(rows)),
            note=note,
            group_objectives=tuple(group_objectives),
        )


@dataclass(frozen=True, kw_only=True)
class WorstClassRepairer(Strategy):
    """Only the class with the largest loss counts; slices are not looked at. In multi-label tasks a set of labels is a class.

    After Lee, Lam, Vasconcelos, Bernstein and Finn, *Clarify: Improving Model Robustness With Natural Language Corrections* (2024).

    >>> from weakspot.testing.examples import repair_example
    >>> slices, material = repair_example()
    >>> WorstClassRepairer().select(slices, material).note
    'Only the class with the largest loss counts: 4 classes.'
    """

    def select(self, slices: Sequence[FailureSlice], material: RepairMaterial) -> TrainingSelection:
        """Return all labelled training rows, with one group objective over classes; the seed has no influence."""
        del slices
        dataset, rows = material.training.dataset, material.labelled
        codes, names = class_groups(dataset, rows)
        groups = positions_by(codes)
        if len(groups) < MIN_GROUPS:
            raise NotEnoughDataError(
                "Fewer than two classes have training samples, so none can be the worst.",
                given=len(groups),
            )
        missing = [name for code, name in enumerate(names) if code not in groups]
        remark = f" No training sample has the label {named(missing)}." if missing else ""
        note = f"Only the class with the largest loss counts: {len(groups)} classes.{remark}"
        return TrainingSelection(
            rows=rows,
            weights=np.ones(len(rows)),
            note=note,
            group_objectives=(tuple(groups.values()),),
        )


@dataclass(frozen=True, kw_only=True)
class GroupDroRepairer(ColumnStrategy):
    """Only the group with the largest loss counts, where groups are known: class and value of a metadata column.

    After Sagawa, Koh, Hashimoto and Liang, *Distributionally Robust Neural Networks for Group Shifts* (2020). A reference, as it
    needs group labels; slices are not looked at. Samples without a value are in no group and keep their weight.

    Args:
        column: metadata column whose values, with the class, are the groups.
        least: groups with fewer samples than this take no part and keep their weight.

    >>> from weakspot.testing.examples import repair_example
    >>> slices, material = repair_example()
    >>> GroupDroRepairer(column="colour").select(slices, material).note
    'Only the group with the largest loss counts: 32 groups by class and colour.'
    """

    least: Count = 1

    def select(self, slices: Sequence[FailureSlice], material: RepairMaterial) -> TrainingSelection:
        """Return all labelled training rows, with one group objective over groups; the seed has no influence."""
        del slices
        rows = material.labelled
        codes, _ = value_groups(material.training.dataset, rows, self.column)
        every = positions_by(codes).values()
        groups: list[IntArray] = [group for group in every if len(group) >= self.least]
        if len(groups) < MIN_GROUPS:
            raise NotEnoughDataError(
                f"Fewer than two groups by {self.column!r} have at least {self.least} training samples.",
                given=len(groups),
                fix="Choose another column, or a smaller setting least.",
            )
        n_small, n_none = len(every) - len(groups), int(np.sum(codes < 0))
        remarks = [f" {n_small} smaller groups take no part."] * bool(n_small) + [
            f" {n_none} samples are in no group."
        ] * bool(n_none)
        note = f"Only the group with the largest loss counts: {len(groups)} groups by class and {self.column}.{''.join(remarks)}"
        return TrainingSelection(
            rows=rows, weights=np.ones(len(rows)), note=note, group_objectives=(tuple(groups),)
        )
