"""One finding as one row of a table."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weakspot.findings.found import FoundSlice


def finding_row(one: "FoundSlice | None") -> dict[str, object]:
    """Return the figures of a finding by name; without one, the names alone.

    Rates and sizes are of the samples that the slice was confirmed on; `gap` allows for the fact that only slices with a large one
    are confirmed, and has the interval `gap_low` to `gap_high`.
    """
    evidence = None if one is None else one.evidence
    interval = None if evidence is None else evidence.adjusted_interval
    return {
        "title": one and one.title,
        "class": one and one.class_name,
        "words": one and ", ".join(one.words),
        "samples": evidence and evidence.n_inside,
        "failures": evidence and evidence.failures_inside,
        "failure_rate": evidence and evidence.rate_inside,
        "rest_failure_rate": evidence and evidence.rate_outside,
        "gap": evidence and evidence.headline_gap,
        "gap_low": interval and interval.low,
        "gap_high": interval and interval.high,
        "p_value": evidence and evidence.p_value,
        "q_value": evidence and evidence.q_value,
        "cause": evidence and evidence.named_cause,
        "method": one and one.found.method,
        "slice_id": one and one.found.slice_id,
    }
