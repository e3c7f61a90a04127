"""How unevenly a classifier serves groups of samples."""

from weakspot.core.evidence import Interval
from weakspot.core.record import Record


class Spread(Record):
    """How unevenly a classifier serves the groups of a repair: slices, the rest of their classes, and all other classes.

    Args:
        worst_group: the group with the lowest accuracy after.
        worst_before: lowest accuracy of a group before; groups are the same before and after, the worst may be another.
        worst_after: lowest accuracy of a group after.
        average_before: mean accuracy over groups before.
        average_after: mean accuracy over groups after.
        gap_before: overall accuracy minus the lowest before.
        gap_after: overall accuracy minus the lowest after.
        worst_change: interval of the change of the lowest accuracy, by a paired bootstrap over samples, or over groups of samples.
        gap_change: interval of the change of the gap, by the same.
    """

    worst_group: str
    worst_before: float
    worst_after: float
    average_before: float
    average_after: float
    gap_before: float
    gap_after: float
    worst_change: Interval
    gap_change: Interval


class GivenGroup(Record):
    """One group that somebody named: a class and a value of a column.

    Args:
        group: its name.
        n_samples: its size.
        accuracy_before: share that was right before.
        accuracy_after: share that is right after.
    """

    group: str
    n_samples: int
    accuracy_before: float
    accuracy_after: float


class GivenGroups(Record):
    """Worst, average and gap over groups that somebody named, which no method of discovery has seen.

    The papers' worst-group accuracy is `spread.worst_after`, their average `overall_after`, and their gap the difference.

    Args:
        column: the column whose values, with the class, are the groups.
        overall_before: share of all measured samples that was right before.
        overall_after: share that is right after.
        groups: every group, also those that are too small to be the worst.
        n_small: groups with too few samples to be the worst.
        spread: the worst, the mean over groups and the gap; None if fewer than two groups are large enough.
    """

    column: str
    overall_before: float
    overall_after: float
    groups: tuple[GivenGroup, ...]
    n_small: int = 0
    spread: Spread | None = None
