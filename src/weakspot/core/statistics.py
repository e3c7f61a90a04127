"""Intervals, exact tests and false-discovery control.

Everything here is a function of counts or arrays and draws nothing at random; simulated screens in the tests show that error
rates hold.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray
from weakspot.core.errors import InputError

Control = Literal["fdr", "fwer", "fdr-dependent"]
"""What is held when many hypotheses are tested: the share of false findings (Benjamini and Hochberg), the chance of any false
finding (Holm), or the share of false findings whatever the dependence (Benjamini and Yekutieli)."""

CONTROLS: tuple[Control, ...] = ("fdr", "fwer", "fdr-dependent")


def wilson_interval(successes: int, trials: int, *, level: float = 0.95) -> tuple[float, float]:
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
    high = 1.0 if successes == trials else float(betaincinv(successes + 1, trials - successes, 1 - tail))
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


def q_values(p_values: Sequence[float] | AnyArray) -> DoubleArray:
    """Return for every p-value the false-discovery rate at which it would just be accepted (Benjamini and Hochberg).

    >>> q_values([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.04, 0.04]
    """
    return adjusted_p_values(p_values, control="fdr")


def adjusted_p_values(
    p_values: Sequence[float] | AnyArray, *, control: Control, weights: Sequence[float] | AnyArray | None = None
) -> DoubleArray:
    """Return for every p-value the error rate at which it would just be accepted.

    Weights say beforehand which hypotheses are worth more; they are scaled to mean one and must not depend on the p-values.
    A value is never below its p-value, which only makes it larger than the weighted procedure asks for.

    Args:
        p_values: [m].
        control: which error rate is meant.
        weights: [m] positive numbers, or None for equal ones.

    >>> adjusted_p_values([0.01, 0.04, 0.03], control="fwer").round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, dtype=np.float64)
    if np.any(~((values >= 0) & (values <= 1))):
        raise InputError("A p-value must lie in [0, 1].", given=values.tolist())
    shares = _mean_one(weights, len(values))
    order = np.lexsort((values, values / shares))
    ranked = values[order] / shares[order]
    adjusted = np.empty_like(values)
    adjusted[order] = _stepped_down(ranked, shares[order]) if control == "fwer" else _stepped_up(ranked, control)
    return np.asarray(np.clip(adjusted, values, 1.0))


def _stepped_up(ranked: DoubleArray, control: Control) -> DoubleArray:
    n_tests, ranks = len(ranked), np.arange(1, len(ranked) + 1)
    penalty = float(np.sum(1.0 / ranks)) if control == "fdr-dependent" else 1.0
    return np.asarray(np.minimum.accumulate((ranked * n_tests * penalty / ranks)[::-1])[::-1])


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


def accepted_at(p_values: Sequence[float] | AnyArray, *, alpha: float) -> BoolArray:
    """Return which hypotheses are discoveries when their false-discovery rate is held at `alpha`.

    >>> accepted_at([0.01, 0.04, 0.03, 0.6], alpha=0.05).tolist()
    [True, False, False, False]
    """
    return np.less_equal(q_values(p_values), alpha)


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
    failures_inside: int, n_inside: int, failures_outside: int, n_outside: int, *, level: float = 0.95
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
    spread = float(ndtri(0.5 + level / 2)) * np.sqrt(1 / inside - 1 / n_first + 1 / outside - 1 / n_second)
    return float(np.exp(middle - spread)), float(np.exp(middle + spread))


def balanced_accuracy(truth: BoolArray, predicted: BoolArray) -> float:
    """Return the mean of the two recalls; of the one there is when all samples are alike, NaN without samples.

    >>> balanced_accuracy(np.array([True, True, True, False]), np.array([True, True, False, False]))
    0.8333333333333333
    """
    recalls = [float(np.mean(predicted[truth == side] == side)) for side in (True, False) if np.any(truth == side)]
    return float(np.mean(recalls)) if recalls else float("nan")


def association(truth: BoolArray, predicted: BoolArray) -> float:
    """Return the correlation of two yes/no columns (the phi coefficient), 0 when one of them is constant.

    Its square times the number of samples is the chi-square statistic of the two-by-two table.

    >>> association(np.array([True, True, False, False]), np.array([True, False, False, False])).__round__(4)
    0.5774
    """
    first, second = np.asarray(truth, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    spread = float(first.std() * second.std()) if len(first) else 0.0
    return float(np.mean((first - first.mean()) * (second - second.mean())) / spread) if spread > 0 else 0.0


def overlap(first: BoolArray, second: BoolArray) -> float:
    """Return how much two sets overlap: common members over all members (Jaccard), 0 when both are empty.

    >>> overlap(np.array([True, True, False]), np.array([False, True, True])).__round__(4)
    0.3333
    """
    either = int(np.sum(first | second))
    return int(np.sum(first & second)) / either if either else 0.0


def _check_counts(successes: int, trials: int) -> None:
    if not 0 <= successes <= trials:
        raise InputError("Counts must satisfy 0 <= successes <= trials.", given=(successes, trials))


def _check_level(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise InputError("A confidence level must lie in (0, 1).", given=level)
