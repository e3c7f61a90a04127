"""Intervals, exact tests and corrections for many tests: for one table of counts, for millions at once, and for ranks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, FloatArray, IntArray
from weakspot.core.errors import InputError

Correction = Literal["fdr", "fwer", "fdr-dependent"]
"""What is held when many hypotheses are tested: the share of false findings (Benjamini and Hochberg), the chance of any false
finding (Holm), or the share of false findings whatever the dependence (Benjamini and Yekutieli)."""

LABELS_AT_ONCE = 64

CORRECTIONS: tuple[Correction, ...] = ("fdr", "fwer", "fdr-dependent")


def wilson_interval(successes: float, trials: float, *, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's score interval of a rate; (0, 1) without trials.

    >>> low, high = wilson_interval(8, 10)
    >>> round(low, 4), round(high, 4)
    (0.4902, 0.9433)
    """
    _check_counts(successes, trials)
    _check_level(level)
    if trials == 0:
        return 0.0, 1.0
    from scipy.special import ndtri

    quantile = float(ndtri(0.5 + level / 2))
    rate, square = successes / trials, quantile**2
    middle = rate + square / (2 * trials)
    spread = quantile * float(np.sqrt(rate * (1 - rate) / trials + square / (4 * trials**2)))
    low = 0.0 if successes == 0 else (middle - spread) / (1 + square / trials)
    high = 1.0 if successes == trials else (middle + spread) / (1 + square / trials)
    return low, high


def exact_interval(successes: int, trials: int, *, level: float = 0.95) -> tuple[float, float]:
    """Return the exact interval of a rate (Clopper and Pearson): never covers less than `level`, (0, 1) without trials.

    >>> low, high = exact_interval(0, 10)
    >>> round(low, 4), round(high, 4)
    (0.0, 0.3085)
    """
    _check_counts(successes, trials)
    _check_level(level)
    if trials == 0:
        return 0.0, 1.0
    from scipy.special import betaincinv

    tail = (1 - level) / 2
    low = 0.0 if successes == 0 else float(betaincinv(successes, trials - successes + 1, tail))
    high = (
        1.0
        if successes == trials
        else float(betaincinv(successes + 1, trials - successes, 1 - tail))
    )
    return low, high


def fisher_p(failures_inside: int, n_inside: int, failures_outside: int, n_outside: int) -> float:
    """Return Fisher's exact one-sided p-value: that failures are no more frequent inside than outside.

    Given the number of failures in all, how many of them fall inside is hypergeometric when membership does not matter. The
    upper tail is summed term by term on the logarithmic scale, so very small values and very large counts keep their digits.

    >>> round(fisher_p(3, 4, 1, 4), 6)
    0.242857
    """
    _check_counts(failures_inside, n_inside)
    _check_counts(failures_outside, n_outside)
    if n_inside == 0 or n_outside == 0:
        return 1.0
    from scipy.special import gammaln

    failures = failures_inside + failures_outside
    counts = np.arange(max(0, failures - n_outside), min(failures, n_inside) + 1, dtype=np.float64)
    # The terms need not be normalised beforehand: what does not depend on the count cancels.
    parts = [counts, n_inside - counts, failures - counts, n_outside - failures + counts]
    terms = -np.sum([gammaln(part + 1) for part in parts], axis=0)
    chances = np.exp(terms - terms.max())
    return min(1.0, float(chances[counts >= failures_inside].sum() / chances.sum()))


def mcnemar_p(gained: int, lost: int) -> float:
    """Return McNemar's exact two-sided p-value: that samples are as often gained as lost.

    >>> mcnemar_p(5, 0)
    0.0625
    """
    _check_counts(gained, gained + lost)
    if gained == lost:
        return 1.0
    from scipy.special import bdtr

    return min(1.0, 2.0 * float(bdtr(min(gained, lost), gained + lost, 0.5)))


def change_interval(
    gained: float, lost: float, n_samples: float, *, level: float = 0.95
) -> tuple[float, float]:
    """Return the interval of a change of a rate on the same samples (Bonett and Price's adjusted Wald interval).

    Without samples it is (-1, 1).

    >>> low, high = change_interval(6, 0, 20)
    >>> round(low, 3), round(high, 3)
    (0.048, 0.497)
    """
    _check_counts(gained, n_samples)
    _check_counts(lost, n_samples - gained)
    _check_level(level)
    if n_samples == 0:
        return -1.0, 1.0
    from scipy.special import ndtri

    up, down = (gained + 1) / (n_samples + 2), (lost + 1) / (n_samples + 2)
    spread = float(ndtri(0.5 + level / 2)) * float(
        np.sqrt((up + down - (up - down) ** 2) / (n_samples + 2))
    )
    return max(-1.0, up - down - spread), min(1.0, up - down + spread)


def q_values(p_values: Sequence[float] | AnyArray) -> DoubleArray:
    """Return for every p-value the false-discovery rate at which it would just be accepted (Benjamini and Hochberg).

    >>> q_values([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.04, 0.04]
    """
    return adjusted_p_values(p_values, correction="fdr")


def adjusted_p_values(
    p_values: Sequence[float] | AnyArray,
    *,
    correction: Correction,
    weights: Sequence[float] | AnyArray | None = None,
    share: float = 1.0,
    earlier: int = 0,
) -> DoubleArray:
    """Return for every p-value the error rate at which it would just be accepted.

    Weights say beforehand which hypotheses are worth more; they are scaled to mean one and must not depend on the p-values.
    A value is never below its p-value, which only makes it larger than the weighted procedure asks for.

    Args:
        p_values: [m].
        correction: which error rate is meant.
        weights: [m] positive numbers, or None for equal ones.
        share: part of the error rate that these tests may spend, if others are made on the same samples at other times.
        earlier: findings of tests that were made before; with `fdr` they allow more, since the share of false ones is over all.

    >>> adjusted_p_values([0.01, 0.04, 0.03], correction="fwer").round(3).tolist()
    [0.03, 0.06, 0.06]
    >>> adjusted_p_values([0.01, 0.04, 0.03], correction="fdr", share=0.5, earlier=2).round(3).tolist()
    [0.02, 0.048, 0.045]
    """
    if not 0.0 < share <= 1.0 or earlier < 0:
        raise InputError(
            "The share must lie in (0, 1], and earlier findings cannot be fewer than none.",
            given=(share, earlier),
        )
    values = np.asarray(p_values, dtype=np.float64)
    if np.any(~((values >= 0) & (values <= 1))):
        raise InputError("A p-value must lie in [0, 1].", given=values.tolist())
    shares = _mean_one(weights, len(values))
    order = np.lexsort((values, values / shares))
    ranked = values[order] / shares[order]
    adjusted = np.empty_like(values)
    adjusted[order] = (
        _stepped_down(ranked, shares[order])
        if correction == "fwer"
        else _stepped_up(ranked, correction, earlier)
    ) / share
    return np.asarray(np.clip(adjusted, values, 1.0))


def _stepped_up(ranked: DoubleArray, correction: Correction, earlier: int) -> DoubleArray:
    n_tests, ranks = len(ranked), np.arange(1, len(ranked) + 1)
    # Earlier findings help under positive dependence only; whoever doubts that gets the penalty and no bonus.
    penalty, bonus = (
        (float(np.sum(1.0 / ranks)), 0) if correction == "fdr-dependent" else (1.0, earlier)
    )
    return np.asarray(
        np.minimum.accumulate((ranked * n_tests * penalty / (ranks + bonus))[::-1])[::-1]
    )


def _stepped_down(ranked: DoubleArray, shares: DoubleArray) -> DoubleArray:
    still_in = np.cumsum(shares[::-1])[::-1]
    return np.asarray(np.maximum.accumulate(ranked * still_in))


def _mean_one(weights: Sequence[float] | AnyArray | None, n_tests: int) -> DoubleArray:
    if weights is None:
        return np.ones(n_tests)
    given = np.asarray(weights, dtype=np.float64)
    if given.shape != (n_tests,) or np.any(~((given > 0) & np.isfinite(given))):
        raise InputError("There must be one positive weight a p-value.", given=given.tolist())
    return np.asarray(given / given.mean()) if n_tests else given


def permutation_p(observed: float, null_values: Sequence[float] | AnyArray) -> float:
    """Return the chance of at least the observed value among values drawn when there is nothing to find.

    The observed value counts as one of the draws, so the result is never zero and keeps its level.

    >>> permutation_p(0.9, [0.5, 0.6, 0.95])
    0.5
    """
    values = np.asarray(null_values, dtype=np.float64)
    return (1 + int(np.sum(values >= observed))) / (1 + len(values))


def cohens_h(rate: float, other: float) -> float:
    """Return Cohen's effect size of two rates: 0.2 is small, 0.5 is medium, 0.8 is large; positive if `rate` is larger.

    >>> round(cohens_h(0.3, 0.1), 4)
    0.5158
    """
    return float(2.0 * np.arcsin(np.sqrt(rate)) - 2.0 * np.arcsin(np.sqrt(other)))


def risk_ratio_interval(
    failures_inside: float,
    n_inside: float,
    failures_outside: float,
    n_outside: float,
    *,
    level: float = 0.95,
) -> tuple[float, float]:
    """Return an interval of how many times as often failures occur inside as outside; always finite.

    On the logarithmic scale, with half a failure and half a sample added to both sides (Walter), so that zeros do no harm.

    >>> [round(bound, 2) for bound in risk_ratio_interval(15, 50, 45, 450)]
    [1.85, 5.0]
    """
    _check_counts(failures_inside, n_inside)
    _check_counts(failures_outside, n_outside)
    _check_level(level)
    from scipy.special import ndtri

    inside, n_first = failures_inside + 0.5, n_inside + 0.5
    outside, n_second = failures_outside + 0.5, n_outside + 0.5
    middle = np.log(inside / n_first) - np.log(outside / n_second)
    spread = float(ndtri(0.5 + level / 2)) * np.sqrt(
        1 / inside - 1 / n_first + 1 / outside - 1 / n_second
    )
    return float(np.exp(middle - spread)), float(np.exp(middle + spread))


def association(truth: BoolArray, predicted: BoolArray) -> float:
    """Return the correlation of two yes/no columns (the phi coefficient), 0 when one of them is constant.

    Its square times the number of samples is the chi-square statistic of the two-by-two table.

    >>> association(np.array([True, True, False, False]), np.array([True, False, False, False])).__round__(4)
    0.5774
    """
    first, second = np.asarray(truth, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    spread = float(first.std() * second.std()) if len(first) else 0.0
    return (
        float(np.mean((first - first.mean()) * (second - second.mean())) / spread)
        if spread > 0
        else 0.0
    )


def overlap(first: BoolArray, second: BoolArray) -> float:
    """Return how much two sets overlap: common members over all members (Jaccard), 0 when both are empty.

    >>> overlap(np.array([True, True, False]), np.array([False, True, True])).__round__(4)
    0.3333
    """
    either = int(np.sum(first | second))
    return int(np.sum(first & second)) / either if either else 0.0


def paired_draws(
    tables: IntArray, *, n_draws: int, random: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Draw the samples of every stratum again (a paired bootstrap) and count who is right before and who is right after.

    A sample is drawn together with both of its predictions, and every stratum keeps its size.

    Args:
        tables: [s, 4] samples of each stratum that are wrong both times, gained, lost, and right both times.
        n_draws: how often.
        random: where chance comes from.

    Returns:
        Right before and right after [n_draws, s].

    >>> before, after = paired_draws(np.array([[0, 3, 0, 2]]), n_draws=2, random=np.random.default_rng(0))
    >>> after.tolist()
    [[5], [5]]
    """
    sizes = tables.sum(axis=1)
    drawn = random.multinomial(
        sizes, tables / np.maximum(sizes, 1)[:, None], size=(n_draws, len(tables))
    )
    return drawn[:, :, 2] + drawn[:, :, 3], drawn[:, :, 1] + drawn[:, :, 3]


def bootstrap_interval(
    estimate: float, draws: AnyArray, *, level: float = 0.95
) -> tuple[float, float]:
    """Return the bias-corrected percentile interval of an estimate (Efron) from what samples drawn again gave.

    Where draws lie more often on one side of the estimate, as they do for the lowest of many rates, the interval is moved to the
    other side; where they do not, it is the middle part of the draws.

    >>> bootstrap_interval(50.0, np.arange(101), level=0.5)
    (25.0, 75.0)
    """
    _check_level(level)
    from scipy.special import ndtr, ndtri

    below = (np.sum(draws < estimate) + 0.5 * np.sum(draws == estimate) + 0.5) / (len(draws) + 1)
    shift, reach = 2.0 * float(ndtri(below)), float(ndtri(0.5 + level / 2))
    low, high = np.quantile(draws, ndtr([shift - reach, shift + reach]))
    return float(low), float(high)


def calibration_error(
    probabilities: FloatArray, targets: AnyArray, *, task: str, n_bins: int = 15
) -> float:
    """Return the expected calibration error in bins of equal mass: how far confidence is from the share that is right.

    Equal confidences stay in one bin, so the order of samples does not matter. For single-label tasks it is about the likeliest
    class, for multi-label tasks about every label on its own, averaged over labels. NaN without samples.

    Args:
        probabilities: [n, c].
        targets: true classes [n], or true labels [n, c].
        task: `single-label` or `multi-label`.
        n_bins: how many bins.

    >>> calibration_error(np.array([[0.75, 0.25], [0.75, 0.25]], dtype=np.float32), np.array([0, 1]), task="single-label")
    0.25
    """
    if not len(probabilities):
        return float("nan")
    if task == "multi-label":
        n_labels = probabilities.shape[1]
        # Columns side by side, a few at a time: reading them out of a large array one by one is several times slower.
        parts = (
            slice(start, start + LABELS_AT_ONCE) for start in range(0, n_labels, LABELS_AT_ONCE)
        )
        pairs = (
            (
                np.ascontiguousarray(probabilities[:, part].T),
                np.ascontiguousarray(targets[:, part].T),
            )
            for part in parts
        )
        errors = [
            _binned_error(own, truth, n_bins)
            for block in pairs
            for own, truth in zip(*block, strict=True)
        ]
        return float(np.mean(errors))
    likeliest = np.argmax(probabilities, axis=1)
    everyone = np.arange(len(probabilities))
    is_right = likeliest == targets if targets.ndim == 1 else targets[everyone, likeliest]
    return _binned_error(probabilities[everyone, likeliest], is_right, n_bins)


def _binned_error(confidence: AnyArray, is_right: AnyArray, n_bins: int) -> float:
    n_samples = len(confidence)
    ordered, right = (
        np.sort(confidence).astype(np.float64),
        np.sort(confidence[is_right.astype(np.bool_)]),
    )
    edges = ordered[np.arange(1, n_bins) * n_samples // n_bins]
    bounds = np.concatenate([[0], np.searchsorted(ordered, edges), [n_samples]])
    sums = np.diff(np.concatenate([[0.0], np.cumsum(ordered)])[bounds])
    n_right = np.diff(np.concatenate([[0], np.searchsorted(right, edges), [len(right)]]))
    return float(np.abs(sums - n_right).sum() / n_samples)


def _check_counts(successes: float, trials: float) -> None:
    if not 0 <= successes <= trials:
        raise InputError("Counts must satisfy 0 <= successes <= trials.", given=(successes, trials))


def _check_level(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise InputError("A confidence level must lie in (0, 1).", given=level)


def wilson_intervals(
    successes: AnyArray, trials: AnyArray, *, level: float = 0.95
) -> tuple[DoubleArray, DoubleArray]:
    """Return the lower and upper ends of Wilson's score intervals [m]; 0 and 1 without trials.

    >>> low, high = wilson_intervals(np.array([8, 0]), np.array([10, 0]))
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([0.4902, 0.0], [0.9433, 1.0])
    """
    from scipy.special import ndtri

    counts, totals = (np.asarray(values) for values in np.broadcast_arrays(successes, trials))
    _refuse_counts(counts, totals)
    if not 0.0 < level < 1.0:
        raise InputError("A confidence level must lie in (0, 1).", given=level)
    quantile = float(ndtri(0.5 + level / 2))
    square = quantile**2
    sizes = np.maximum(totals, 1).astype(np.float64)
    rates = counts / sizes
    middles = rates + square / (2 * sizes)
    spreads = quantile * np.sqrt(rates * (1 - rates) / sizes + square / (4 * sizes**2))
    widths = 1 + square / sizes
    lows = np.where(counts == 0, 0.0, (middles - spreads) / widths)
    return lows, np.where(counts == totals, 1.0, (middles + spreads) / widths)


def mcnemar_ps(gained: AnyArray, lost: AnyArray) -> DoubleArray:
    """Return McNemar's exact two-sided p-values [m]: that samples are as often gained as lost.

    >>> mcnemar_ps(np.array([5, 2]), np.array([0, 2])).tolist()
    [0.0625, 1.0]
    """
    from scipy.special import bdtr

    more, less = np.maximum(gained, lost), np.minimum(gained, lost)
    _refuse_counts(less, more)
    return np.asarray(
        np.where(more == less, 1.0, np.minimum(1.0, 2.0 * bdtr(less, more + less, 0.5))),
        dtype=np.float64,
    )


def fisher_ps(
    failures_inside: AnyArray, n_inside: AnyArray, failures_outside: AnyArray, n_outside: AnyArray
) -> DoubleArray:
    """Return Fisher's exact one-sided p-values [m]: that failures are no more frequent inside than outside.

    Args:
        failures_inside: [m], or one number for all; so are the others.
        n_inside: samples inside.
        failures_outside: failures outside.
        n_outside: samples outside.

    >>> fisher_ps(np.array([3, 4]), 4, np.array([1, 0]), 4).round(6).tolist()
    [0.242857, 0.014286]
    """
    from weakspot.core.kernels import fisher_tails

    given = np.broadcast_arrays(failures_inside, n_inside, failures_outside, n_outside)
    inside, sizes, outside, sizes_outside = (
        np.asarray(values, dtype=np.int64).ravel() for values in given
    )
    _refuse_counts(inside, sizes)
    _refuse_counts(outside, sizes_outside)
    n_failed, n_samples, found = inside + outside, sizes + sizes_outside, np.empty(len(inside))
    # Tables with the same margins share one law. Nearly always all tables are about the same samples and failures.
    if len(inside) and np.ptp(n_failed) == 0 and np.ptp(n_samples) == 0:
        fisher_tails(inside, sizes, n_failed[:1], n_samples[:1], _order_of(sizes), found)
    else:
        fisher_tails(
            inside, sizes, n_failed, n_samples, np.lexsort((sizes, n_failed, n_samples)), found
        )
    return found


def _order_of(sizes: IntArray) -> IntArray:
    # Numbers of two bytes are sorted several times faster.
    is_short = sizes.max() <= np.iinfo(np.uint16).max
    return np.argsort(sizes.astype(np.uint16), kind="stable") if is_short else np.argsort(sizes)


def _refuse_counts(counts: AnyArray, totals: AnyArray) -> None:
    is_wrong = (counts < 0) | (counts > totals)
    if np.any(is_wrong):
        place = int(np.flatnonzero(is_wrong.ravel())[0])
        raise InputError(
            "Counts must satisfy 0 <= successes <= trials.",
            given=(int(counts.ravel()[place]), int(totals.ravel()[place])),
        )


GAPS = (0.025, 0.05, 0.1, 0.2, 0.4)
"""Differences of failure rates that are thought of, all alike."""
MIN_RATE = 0.01
MAX_RATE = 0.97
IMPOSSIBLE = -700.0


def log_ratios(sizes: IntArray, n_samples: int, n_failed: int) -> DoubleArray:
    """Return the logarithm [m, k] of how many times more likely 0, 1, ... failures inside are with a gap than without.

    Both totals are fixed, as where failures are dealt out anew. The average over the gaps prefers memberships in which a gap of
    ordinary size would show, where the smallest p-value prefers none.

    Args:
        sizes: members [m].
        n_samples: members and others together.
        n_failed: failures among all.

    >>> ratios = np.exp(log_ratios(np.array([10]), 100, 10))[0]
    >>> bool(ratios[0] < 1 < ratios[3] < ratios[4])
    True
    """
    counts = np.arange(min(n_failed, int(sizes.max())) + 1)[None, :]
    inside = np.asarray(sizes, dtype=np.int64)[:, None]
    chances = log_chances(inside, counts, n_samples, n_failed)
    total = np.full(chances.shape, -np.inf)
    for gap in GAPS:
        rest = np.clip((n_failed - gap * inside) / n_samples, MIN_RATE, MAX_RATE)
        worse = np.clip(rest + gap, MIN_RATE, MAX_RATE)
        tilt = counts * (np.log(worse / (1.0 - worse)) - np.log(rest / (1.0 - rest)))
        total = np.logaddexp(total, tilt - _log_sum(chances + tilt))
    return np.where(np.isfinite(chances), total - np.log(len(GAPS)), IMPOSSIBLE)


def log_chances(inside: IntArray, counts: IntArray, n_samples: int, n_failed: int) -> DoubleArray:
    """Return the logarithm of the hypergeometric chance of so many failures inside; minus infinity where it cannot be."""
    from scipy.special import gammaln

    parts = np.broadcast_arrays(
        counts, inside - counts, n_failed - counts, n_samples - inside - n_failed + counts
    )
    is_possible = np.all(np.stack(parts) >= 0, axis=0)
    logs = -gammaln(np.maximum(np.stack(parts), 0) + 1.0).sum(axis=0)
    logs = np.where(is_possible, logs, -np.inf)
    return np.asarray(logs - _log_sum(logs), dtype=np.float64)


def _log_sum(logs: DoubleArray) -> DoubleArray:
    largest = logs.max(axis=1, keepdims=True)
    return np.asarray(largest + np.log(np.exp(logs - largest).sum(axis=1, keepdims=True)))


DIGITS = 9


@dataclass(frozen=True)
class RankSum:
    """What ranks say; sums of independent comparisons add up.

    Args:
        above: pairs of one sample of each kind in which the chosen one is larger; ties count half.
        pairs: how many pairs there are.
        variance: of `above` if nothing differs.
    """

    above: float = 0.0
    pairs: float = 0.0
    variance: float = 0.0

    @classmethod
    def of(cls, values: DoubleArray, chosen: BoolArray) -> "RankSum":
        """Compare the chosen values with the others.

        >>> RankSum.of(np.array([1.0, 2.0, 3.0, 3.0]), np.array([False, False, True, True]))
        RankSum(above=4.0, pairs=4.0, variance=1.5)
        """
        n_chosen, n_all = int(chosen.sum()), len(chosen)
        ranks = midranks(values)
        pairs = float(n_chosen * (n_all - n_chosen))
        spread = float(np.var(ranks, ddof=1)) if n_all > 1 else 0.0
        return cls(
            above=float(ranks[chosen].sum()) - n_chosen * (n_chosen + 1) / 2,
            pairs=pairs,
            variance=pairs / n_all * spread,
        )

    def __add__(self, other: "RankSum") -> "RankSum":
        return RankSum(
            self.above + other.above, self.pairs + other.pairs, self.variance + other.variance
        )

    @property
    def auc(self) -> float:
        """Return the share of pairs in which the chosen one is larger."""
        return self.above / self.pairs if self.pairs else 0.5

    @property
    def p_value(self) -> float:
        """Return the one-sided p-value that chosen values are no larger; the normal tail is longer than the exact one.

        >>> round(RankSum.of(np.arange(12.0), np.arange(12) >= 6).p_value, 3)
        0.003
        """
        from scipy.special import ndtr

        if not self.variance:
            return 1.0
        # Half a pair less: they are whole numbers.
        return float(ndtr(-(self.above - self.pairs / 2 - 0.5) / np.sqrt(self.variance)))

    @property
    def reversed(self) -> "RankSum":
        return RankSum(self.pairs - self.above, self.pairs, self.variance)


def midranks(values: DoubleArray) -> DoubleArray:
    """Return ranks from 1 on; equal values share the mean of theirs. Copies of an image may differ in the last digit.

    >>> midranks(np.array([2.0, 1.0, 2.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, inverse, counts = np.unique(
        np.round(values, DIGITS), return_inverse=True, return_counts=True
    )
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[inverse])
