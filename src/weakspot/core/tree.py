"""Confirmed slices of a class as a small tree: broad findings, worse ones inside them, and what is explained by others."""

from enum import StrEnum

from weakspot.core.failures import Side
from weakspot.core.record import Record


class NodeKind(StrEnum):
    """What a confirmed slice is in the tree of its class."""

    FINDING = "finding"
    WORSE = "worse"
    EXPLAINED = "explained"


class SliceOrder(StrEnum):
    """By what slices are ordered for a reader."""

    SEVERITY = "severity"
    COVERAGE = "coverage"
    BOTH = "both"


class SliceNode(Record):
    """The place of a confirmed slice.

    Args:
        slice_id: which slice.
        kind: a finding of its own; worse than the finding around it; or explained by another one.
        parent: the finding around it, or the one that explains it.
        coverage: its share of all failures, of all classes.
        excess: its share of all failures beyond what it had if it failed as often as the rest of its class.
        share_inside: how many of its members are members of the parent.
        others_failed: failures among the other members of the parent.
        n_others: other members of the parent.
        p_value: that it fails no more often than those, corrected for the slices of the class that were compared so.
    """

    slice_id: str
    kind: NodeKind = NodeKind.FINDING
    parent: str | None = None
    coverage: float = 0.0
    excess: float = 0.0
    share_inside: float | None = None
    others_failed: int = 0
    n_others: int = 0
    p_value: float | None = None


class ClassTree(Record):
    """The confirmed slices of one class.

    Args:
        class_name: the class.
        side: for multi-label tasks, whether members have or lack the label.
        n_failed: failures of the class among the samples that they were confirmed on.
        n_left: those in no finding.
        nodes: every confirmed slice once.
    """

    class_name: str
    side: Side | None = None
    n_failed: int = 0
    n_left: int = 0
    nodes: tuple[SliceNode, ...] = ()
