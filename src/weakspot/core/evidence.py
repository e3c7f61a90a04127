"""What was measured on data that was not used to find a slice, and what that proves."""

from enum import StrEnum

from weakspot.core.record import Record
from weakspot.core.slices import DataUse


class Verdict(StrEnum):
    """What the evidence of a slice allows to say."""

    CONFIRMED = "confirmed"
    NOT_CONFIRMED = "not confirmed"
    TOO_FEW = "too few samples"


class Cause(StrEnum):
    """Why the classifier fails there, as far as the training data tells."""

    RARE = "rare in training"
    SPURIOUS = "spurious cue"
    HARD = "hard although common"
    UNKNOWN = "unknown"


class Interval(Record):
    """A confidence interval of a rate."""

    low: float
    high: float
    level: float = 0.95


class CauseFinding(Record):
    """The probable cause with the figures behind it.

    Args:
        cause: the verdict.
        share_training: share of members among the class's training samples, None when unknown.
        share_evaluation: share of members among the class's evaluation samples.
        dominant_prediction: the class that failures are mostly taken for, if any.
        dominant_share: its share among the failures.
        sentence: the finding in words.
    """

    cause: Cause
    share_training: float | None = None
    share_evaluation: float | None = None
    dominant_prediction: str | None = None
    dominant_share: float | None = None
    sentence: str = ""


class Evidence(Record):
    """One measurement of one slice.

    Args:
        slice_id: which slice.
        verifier: registered name of the verifier.
        measured_on: the data, disjoint from the data the slice was found on.
        n_inside: class samples inside the slice.
        failures_inside: failures among them.
        n_outside: class samples outside the slice.
        failures_outside: failures among them.
        rate_inside: failure rate inside, 0 to 1.
        rate_outside: failure rate outside.
        interval_inside: interval of `rate_inside`.
        interval_outside: interval of `rate_outside`.
        gap: `rate_inside - rate_outside`; larger is worse.
        p_value: chance of such a gap if members failed no more often than the rest of the class.
        q_value: false-discovery rate at which this slice would just be published, over all that was tested.
        n_tested: how many slices were tested together.
        verdict: what this allows to say.
        cause: why, if it was looked into.
    """

    slice_id: str
    verifier: str
    measured_on: DataUse
    n_inside: int
    failures_inside: int
    n_outside: int
    failures_outside: int
    rate_inside: float
    rate_outside: float
    interval_inside: Interval
    interval_outside: Interval
    gap: float
    p_value: float
    q_value: float
    n_tested: int
    verdict: Verdict
    cause: CauseFinding | None = None
