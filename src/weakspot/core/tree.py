"""Confirmed slices of a class as a small tree: broad findings, worse ones inside them, and what is explained by others."""

from enum import StrEnum

from weakspot.core.failures import Side
from weakspot.core.record import Record


class NodeKind(StrEnum):
    """What a confirmed slice is in the tree of its class."""

    FINDING = "finding"
    WORSE = "worse"
    EXPLAINED = "explained"


class Explanation(Record):
    """Why a confirmed slice is no finding of its own: a stronger one of its class accounts for it.

    Args:
        slice_id: the stronger slice.
        shared_failures: share of the slice's failures that are members of the stronger one.
        n_inside: members of the slice that are in no stronger slice.
        failures_inside: failures among them.
        n_outside: samples of the class that are in neither.
        failures_outside: failures among them.
        shared_by_all: share of the slice's failures that are members of any finding; None if that was not counted.
        n_both: members of both slices.
        failures_both: failures among them.
        n_beside: other members of the stronger one.
        failures_beside: failures among them.
    """

    slice_id: str
    shared_failures: float
    n_inside: int
    failures_inside: int
    n_outside: int
    failures_outside: int
    shared_by_all: float | None = None
    n_both: int = 0
    failures_both: int = 0
    n_beside: int = 0
    failures_beside: int = 0


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
