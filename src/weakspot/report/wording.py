"""Figures and findings as sentences that need no training in statistics."""

from weakspot.core.evidence import Cause, Evidence, Interval, Verdict
from weakspot.core.failures import Side
from weakspot.core.repairs import GroupChange
from weakspot.core.slices import FailureSlice

SMALLEST_SHOWN = 0.0001
CERTAIN = 0.05
HALF_POINT = 0.005

ARM_NAMES = {
    "slice-balanced": "slice-balanced",
    "plain": "retrained, no weights",
    "random": "random choice",
    "confidence": "least confident",
}

VERDICT_WORDS = {
    Verdict.CONFIRMED: "confirmed",
    Verdict.NOT_CONFIRMED: "not confirmed: the difference may be chance",
    Verdict.TOO_FEW: "too few samples to test",
}

CAUSE_WORDS = {
    Cause.RARE: "The classifier saw too few such samples in training.",
    Cause.SPURIOUS: "The classifier goes by a cue that usually belongs to another class.",
    Cause.HARD: "Such samples are common in training and still hard; more of the same may not help.",
    Cause.UNKNOWN: "The training samples do not tell why.",
}


def percent(share: float) -> str:
    """Return a share in whole percent.

    >>> percent(0.625), percent(0.0), percent(0.0004)
    ('62 %', '0 %', 'under 1 %')
    """
    if 0 < share < HALF_POINT:
        return "under 1 %"
    return f"{100 * share:.0f} %"


def points(change: float) -> str:
    """Return a change of a share in percentage points, with its sign.

    >>> points(0.123), points(-0.04), points(0.0)
    ('+12', '−4', '±0')
    """
    rounded = round(100 * change)
    if rounded == 0:
        return "±0"
    return f"+{rounded}" if rounded > 0 else f"−{-rounded}"


def interval(values: Interval) -> str:
    """Return an interval of a share in words.

    >>> interval(Interval(low=0.51, high=0.72))
    '95 % interval 51–72 %'
    """
    return f"{100 * values.level:.0f} % interval {100 * values.low:.0f}–{100 * values.high:.0f} %"


def p_value(value: float) -> str:
    """Return a p-value with the digits that matter.

    >>> p_value(0.00001), p_value(0.0312), p_value(1.0)
    ('< 0.0001', '0.031', '1')
    """
    return f"< {SMALLEST_SHOWN:.4f}" if value < SMALLEST_SHOWN else f"{value:.2g}"


def class_words(found: FailureSlice) -> str:
    """Return the class of a slice as it stands in a sentence."""
    return f"pictures without {found.class_name}" if found.side is Side.ABSENT else f"“{found.class_name}” pictures"


def slice_words(found: FailureSlice) -> str:
    """Return the members of a slice as they stand in a sentence."""
    if not found.names:
        return f"one kind of {class_words(found)}, for which no words were found,"
    return f"{class_words(found)} that fit “{found.names[0].contrast}”"


def finding_sentence(found: FailureSlice, evidence: Evidence) -> str:
    """Return what a confirmed slice says."""
    return (
        f"On {slice_words(found)} the classifier fails {percent(evidence.rate_inside)} of the time "
        f"({interval(evidence.interval_inside)}), against {percent(evidence.rate_outside)} on the other {class_words(found)}."
    )


def proof_sentence(evidence: Evidence) -> str:
    """Return how the finding was tested."""
    together = f"; corrected for the {evidence.n_tested} slices tested together: {p_value(evidence.q_value)}"
    return (
        f"Measured on {evidence.n_inside + evidence.n_outside} samples that took no part in finding it: "
        f"{evidence.failures_inside} of {evidence.n_inside} inside failed, {evidence.failures_outside} of {evidence.n_outside} "
        f"outside. A gap like this or larger would arise by chance with probability {p_value(evidence.p_value)}"
        f"{together if evidence.n_tested > 1 else ''}."
    )


def count(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count(1, "slice"), count(3, "slice")
    ('1 slice', '3 slices')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def arm_name(arm: str) -> str:
    """Return an arm as people read it."""
    return ARM_NAMES.get(arm, arm)


def repair_sentence(group: GroupChange) -> str:
    """Return what a repair did to a slice."""
    sure = "" if group.p_value <= CERTAIN else f" (may be chance: p = {p_value(group.p_value)})"
    return (
        f"Accuracy on “{group.group}” went from {percent(group.accuracy_before)} to {percent(group.accuracy_after)} "
        f"on {count(group.n_samples, 'test sample')}{sure}"
    )


def rival_words(arm: str, group: GroupChange, overall: GroupChange | None) -> str:
    """Return how far a baseline came on the same slice, and at what cost overall."""
    cost = f" (overall {percent(overall.accuracy_after)})" if overall is not None else ""
    return f"; the best baseline there, “{arm_name(arm)}”, reached {percent(group.accuracy_after)}{cost}"
