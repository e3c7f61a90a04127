"""What people decided about slices."""

from enum import StrEnum

from weakspot.core.record import Record


class DecisionKind(StrEnum):
    """What was decided."""

    ACCEPTED = "accepted"
    DISMISSED = "dismissed"
    RESTORED = "restored"
    RENAMED = "renamed"
    MERGED = "merged"


class Decision(Record):
    """One decision; later ones about the same slice count more.

    Args:
        slice_id: which slice.
        kind: what was decided.
        by: who decided, as that person is called.
        time: ISO 8601, UTC.
        reason: in that person's words.
    """

    slice_id: str
    kind: DecisionKind
    by: str
    time: str
    reason: str = ""
