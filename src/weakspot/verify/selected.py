"""Gaps of confirmed slices without the winner's curse: each allows for the limit that it had to pass."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from weakspot.core.evidence import Evidence, Interval, Verdict
from weakspot.core.selection import adjust_gap


def with_adjusted_gaps(
    evidence: Sequence[Evidence], *, alpha: float, min_gap: float = 0.0
) -> tuple[Evidence, ...]:
    """Return the same evidence; confirmed slices have a gap that allows for their selection.

    Args:
        evidence: with the verdicts that are published.
        alpha: error rate up to which a slice is confirmed.
        min_gap: least gap of a confirmed slice.
    """
    batches: dict[tuple[int, str], list[Evidence]] = defaultdict(list)
    for entry in evidence:
        if entry.verdict is Verdict.CONFIRMED:
            batches[entry.batch, entry.measured_on.digest].append(entry)
    limits = {key: _limit(entries, alpha) for key, entries in batches.items()}
    return tuple(
        _adjust(entry, limits[entry.batch, entry.measured_on.digest], min_gap)
        if entry.verdict is Verdict.CONFIRMED
        else entry
        for entry in evidence
    )


def _limit(confirmed: Iterable[Evidence], alpha: float) -> float:
    """Return the largest p-value of weight one that would have been confirmed among these.

    The last one that was accepted has q = p / weight times what everything tested together costs; the limit is where that is alpha.
    """
    last = max(confirmed, key=lambda entry: entry.p_value / entry.weight)
    cost = last.q_value * last.weight / last.p_value if last.p_value > 0 else 1.0
    return alpha / max(cost, 1e-12)


def _adjust(entry: Evidence, limit: float, min_gap: float) -> Evidence:
    table = _in_groups(entry)
    if not table[1] or not table[3] or table[0] * table[3] <= table[2] * table[1]:
        return entry
    level = entry.interval_inside.level
    found = adjust_gap(
        table,
        largest_p=max(entry.p_value, min(1.0, limit * entry.weight)) / entry.n_compared,
        least_gap=min_gap,
        level=level,
    )
    return entry.model_copy(
        update={
            "adjusted_gap": found.gap,
            "adjusted_interval": Interval(low=found.low, high=found.high, level=level),
        }
    )


def _in_groups(entry: Evidence) -> tuple[int, int, int, int]:
    """Return failures and samples inside and outside; where images form groups, as many as there are groups."""
    sides = (
        (entry.failures_inside, entry.n_inside, entry.groups_inside),
        (entry.failures_outside, entry.n_outside, entry.groups_outside),
    )
    (failures, total), (others, rest) = (
        (round(count * groups / size), groups) if groups else (count, size)
        for count, size, groups in sides
    )
    return failures, total, others, rest
