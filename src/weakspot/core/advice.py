"""What to do about findings, best first."""

from enum import StrEnum

from weakspot.core.evidence import Interval
from weakspot.core.record import Record


class AdviceKind(StrEnum):
    """What a person or the product can do."""

    MEND_SETUP = "mend the set-up"
    CHECK_LABELS = "check labels"
    LABEL = "label images"
    COLLECT = "collect images"
    RETRAIN = "retrain the last layer"
    GENERATE = "generate images"
    ACCEPT = "accept and gate"


class Advice(Record):
    """One thing to do.

    Args:
        kind: what.
        subject: id of the slice or class finding it is about; empty if it is about the whole set.
        class_name: the class, empty if it is about the whole set.
        sentence: what to do, how much of it, for what gain, as the terminal prints it; says so if nothing can help.
        n_known: such images that training has now; None if that is not known.
        n_wanted: images to label or collect; None where that is not the remedy or cannot be said.
        gain: expected change of accuracy on these images, -1 to 1; None if it cannot be said.
        gain_interval: its interval.
        is_measured: whether `gain` was measured on test samples, not predicted.
        files: files written for it, relative to the project folder.
        command: the command that does it; empty if none does.
    """

    kind: AdviceKind
    subject: str = ""
    class_name: str = ""
    sentence: str
    n_known: int | None = None
    n_wanted: int | None = None
    gain: float | None = None
    gain_interval: Interval | None = None
    is_measured: bool = False
    files: tuple[str, ...] = ()
    command: str = ""
