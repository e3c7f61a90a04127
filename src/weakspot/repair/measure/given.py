"""Worst, average and gap over groups that somebody named in a column: the same for every arm, and for every annotator."""

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import Dataset
from weakspot.core.groups import several_to_a_group
from weakspot.core.spreads import GivenGroup, GivenGroups
from weakspot.core.training_sets import value_groups
from weakspot.repair.measure.groups import Groups, given_groups
from weakspot.repair.measure.predictions import Comparison
from weakspot.repair.measure.spread import spread_of


def measure_given(
    comparison: Comparison, column: str, *, least_group: int, seed: int
) -> GivenGroups | None:
    """Return accuracies of the groups by class and value of a column, before and after; None if no measured sample has a value.

    Args:
        comparison: what was measured, before and after.
        column: metadata column with group labels; no method of discovery reads it.
        least_group: groups with fewer samples cannot be the worst.
        seed: of the intervals.
    """
    samples = comparison.samples
    if not len(samples) or not _says_something(samples.dataset, column, samples.rows):
        return None
    numbers, names = value_groups(samples.dataset, samples.rows, column)
    groups = given_groups(comparison, numbers)
    known = np.unique(numbers[numbers >= 0])
    groups = Groups(names=tuple(names[number] for number in known), parts=groups.parts)
    before, after = (_right(groups, when) for when in ("right_before", "right_after"))
    large = groups.at_least(least_group)
    results = [part.result for part in groups.parts]
    n_decisions = sum(len(one.positions) for one in results)
    return GivenGroups(
        column=column,
        overall_before=sum(int(one.right_before.sum()) for one in results) / n_decisions,
        overall_after=sum(int(one.right_after.sum()) for one in results) / n_decisions,
        groups=tuple(
            GivenGroup(
                group=name,
                n_samples=size,
                accuracy_before=first / size,
                accuracy_after=second / size,
            )
            for name, size, first, second in zip(
                groups.names, groups.sizes.tolist(), before, after, strict=True
            )
        ),
        n_small=len(groups) - len(large),
        spread=spread_of(
            large,
            len(samples),
            seed=seed,
            together=several_to_a_group(comparison.before.groups),
        ),
    )


def _says_something(dataset: Dataset, column: str, rows: IntArray) -> bool:
    if column not in dataset.metadata_names:
        return False
    taken = dataset.metadata(column).take(rows)
    return bool(taken.null_count < len(taken))


def _right(groups: Groups, when: str) -> list[int]:
    """Return how many decisions of every group are right."""
    counts = np.zeros(len(groups), dtype=np.int64)
    for part in groups.parts:
        np.add.at(counts, part.numbers, part.members @ getattr(part.result, when).astype(np.int64))
    return [int(one) for one in counts]
