"""Gaps of confirmed slices without the winner's curse: each allows for the limit that it had to pass."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from weakspot.core.arrays import DoubleArray, IntArray
from weakspot.core.evidence import Evidence, Interval, Verdict
from weakspot.core.statistics import wilson_interval

GRID = 400


def adjust_gap(
    table: tuple[int, int, int, int],
    *,
    largest_p: float,
    least_gap: float = 0.0,
    level: float = 0.95,
) -> tuple[float, float, float]:
    """Return the gap of a slice that is published only if Fisher's p-value is at most `largest_p`, and the ends of its interval.

    The gap is the mean over all gaps from zero up, weighed by how likely they make what was seen. The interval covers the true gap at
    least with `level`, given that the slice was published and the gap is not below zero; selection can only have raised the gap, so
    its upper end is that of an ordinary interval.

    Args:
        table: failures and samples inside, failures and samples outside; a positive gap, no side empty.
        largest_p: p-value up to which it would have been published.
        least_gap: gap from which on it would have been published.
        level: of the interval.

    >>> gap, _, _ = adjust_gap((6, 10, 14, 140), largest_p=0.01)
    >>> round(6 / 10 - 14 / 140, 2), round(gap, 2)
    (0.5, 0.38)
    """
    seen, n_inside, failures_outside, n_outside = table
    failures, n_all = seen + failures_outside, n_inside + n_outside
    counts, chances = _central(failures, n_inside, n_outside)
    tails = np.cumsum(np.exp(chances - chances.max())[::-1])[::-1]
    wide = counts / n_inside - (failures - counts) / n_outside >= least_gap
    reaching = counts[wide & (tails <= largest_p * tails[0] * (1 + 1e-9))]
    limit = min(seen, int(reaching[0])) if len(reaching) else seen
    kept = counts >= limit
    highest = min(failures / n_inside, (n_all - failures) / n_outside)
    gaps = np.linspace(0.0, highest, GRID + 2)[1:-1]
    outside = (failures - n_inside * gaps) / n_all
    inside = outside + gaps
    odds = np.log(inside) - np.log1p(-inside) - np.log(outside) + np.log1p(-outside)
    upper, own = _tails(counts[kept], chances[kept], odds, seen)
    tail = (1 - level) / 2
    low = 0.0 if upper[0] > tail else float(gaps[np.argmax(upper > tail)])
    return float(np.sum(own * gaps) / np.sum(own)), low, _plain_upper_end(table, level)


def _plain_upper_end(table: tuple[int, int, int, int], level: float) -> float:
    """Return the upper end of Newcombe's interval of a difference of rates."""
    failures_inside, n_inside, failures_outside, n_outside = table
    rate, other = failures_inside / n_inside, failures_outside / n_outside
    _, high = wilson_interval(failures_inside, n_inside, level=level)
    low, _ = wilson_interval(failures_outside, n_outside, level=level)
    return min(1.0, rate - other + float(np.hypot(high - rate, other - low)))


def _central(failures: int, n_inside: int, n_outside: int) -> tuple[IntArray, DoubleArray]:
    """Return possible numbers of failures inside, and the logarithm of their chances up to a constant, if membership did not matter."""
    from scipy.special import gammaln

    counts = np.arange(max(0, failures - n_outside), min(failures, n_inside) + 1)
    parts = (counts, n_inside - counts, failures - counts, n_outside - failures + counts)
    return counts, -np.sum([gammaln(part + 1.0) for part in parts], axis=0)


def _tails(
    counts: IntArray, chances: DoubleArray, odds: DoubleArray, seen: int
) -> tuple[DoubleArray, DoubleArray]:
    """Return for every logarithm of an odds ratio the chance of at least, and of exactly, what was seen."""
    upper, own = np.empty(len(odds)), np.empty(len(odds))
    for place, shift in enumerate(odds):
        terms = chances + counts * shift
        weights = np.exp(terms - terms.max())
        upper[place] = weights[counts >= seen].sum() / weights.sum()
        own[place] = weights[counts == seen].sum() / weights.sum()
    return upper, own


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
    gap, low, high = adjust_gap(
        table,
        largest_p=max(entry.p_value, min(1.0, limit * entry.weight)) / entry.n_compared,
        least_gap=min_gap,
        level=level,
    )
    return entry.model_copy(
        update={
            "adjusted_gap": gap,
            "adjusted_interval": Interval(low=low, high=high, level=level),
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
