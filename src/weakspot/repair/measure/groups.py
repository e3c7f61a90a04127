"""The groups that a classifier should serve evenly: slices, the rest of their classes, and all other classes; or given ones."""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.errors import DataError
from weakspot.repair.measure.predictions import Comparison, Result, SlicePart


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupedResult:
    """The measured samples of one class, in groups that may overlap.

    Args:
        result: the class.
        numbers: [k] which groups have samples here.
        members: [k, n] which samples are in them.
    """

    result: Result
    numbers: IntArray
    members: BoolArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Groups:
    """All measured samples, in groups.

    Args:
        names: [g].
        parts: one entry a class; together they hold every decision, whether it is in a group or not.
    """

    names: tuple[str, ...]
    parts: tuple[GroupedResult, ...]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def sizes(self) -> IntArray:
        """Return how many decisions are in every group [g]."""
        sizes = np.zeros(len(self), dtype=np.int64)
        for part in self.parts:
            np.add.at(sizes, part.numbers, part.members.sum(axis=1))
        return sizes

    def at_least(self, n_samples: int) -> "Groups":
        """Return only the groups of a least size; the samples of the others still count overall."""
        is_kept = self.sizes >= max(n_samples, 1)
        renumbered = np.cumsum(is_kept) - 1
        return Groups(
            names=tuple(name for name, kept in zip(self.names, is_kept, strict=True) if kept),
            parts=tuple(
                GroupedResult(
                    result=part.result,
                    numbers=renumbered[part.numbers[is_kept[part.numbers]]],
                    members=part.members[is_kept[part.numbers]],
                )
                for part in self.parts
            ),
        )


def own_groups(comparison: Comparison) -> Groups:
    """Return slices, what is in no slice of a class that has some, and the classes that have none."""
    by_class: dict[int, list[SlicePart]] = defaultdict(list)
    for slice_part in comparison.parts:
        if slice_part.result is not None:
            by_class[id(slice_part.result)].append(slice_part)
    names: list[str] = []
    parts: list[GroupedResult] = []
    for result in comparison.predictions:
        own = by_class.get(id(result), [])
        title = result.problem.title
        members = [np.ones(len(result.positions), dtype=np.bool_)]
        if own:
            members = [*(one.inside for one in own), np.all([one.outside for one in own], axis=0)]
        numbers = np.arange(len(names), len(names) + len(members))
        names += [*(one.title for one in own), f"{title}: the rest"] if own else [title]
        parts.append(
            GroupedResult(result=result, numbers=numbers, members=np.array(members, dtype=np.bool_))
        )
    return Groups(names=tuple(names), parts=tuple(parts))


def given_groups(comparison: Comparison, groups: IntArray) -> Groups:
    """Return groups that somebody else named, for example by group labels in a column.

    Args:
        comparison: what was measured.
        groups: [n] number of every measured sample's group, -1 for none.
    """
    if groups.shape != (len(comparison.samples),):
        raise DataError(
            "There must be one group number for every measured sample.",
            given=(groups.shape, len(comparison.samples)),
        )
    known = np.unique(groups[groups >= 0])
    parts: list[GroupedResult] = []
    for result in comparison.predictions:
        own = groups[result.positions]
        here = np.unique(own[own >= 0])
        parts.append(
            GroupedResult(
                result=result,
                numbers=np.searchsorted(known, here),
                members=own[None, :] == here[:, None],
            )
        )
    return Groups(names=tuple(f"group {number}" for number in known.tolist()), parts=tuple(parts))
