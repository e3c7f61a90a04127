"""Confidence sequences: intervals of a rate, of a difference and of a ratio that may be looked at after every picture.

For every possible rate p there is a bet against it: the chance of the outcomes averaged over all rates (by Jeffreys' prior) over
their chance under p. If p is the truth, the bet is fair, and by Ville's inequality it exceeds 1/alpha at any time at all with a
chance of at most alpha. The interval is every p whose bet has not exceeded 1/alpha. Differences and ratios are those that the bets
of `evidence` leave over, so that what is said of them never contradicts what is proven.
"""

from math import exp, log, log1p

from weakspot.core.errors import InputError
from weakspot.search.sequential.evidence import least_difference, least_ratio

PRIOR = 0.5
HALVINGS = 44
SMALLEST_RATIO = 1e-4


def rate_interval(failures: int, n_pictures: int, *, level: float = 0.95) -> tuple[float, float]:
    """Return an interval of a rate that holds at all times at once; (0, 1) without pictures.

    Args:
        failures: so far.
        n_pictures: so far.
        level: chance that the interval never excludes the truth, however long one goes on.

    >>> low, high = rate_interval(8, 10)
    >>> round(low, 3), round(high, 3)
    (0.342, 0.991)
    """
    limit = _limit(level)
    if not 0 <= failures <= n_pictures:
        raise InputError("Counts must satisfy 0 <= failures <= pictures.", given=(failures, n_pictures))
    low = _edge(failures, n_pictures, limit, outside=0.0) if failures else 0.0
    return low, _edge(failures, n_pictures, limit, outside=1.0) if failures < n_pictures else 1.0


def contrast_intervals(
    counts: tuple[int, int], baseline: tuple[int, int], *, level: float = 0.95
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return intervals of a rate minus the baseline's and of a rate over the baseline's; both hold at all times at once.

    Either end is missed with a chance of at most half of what the level leaves. The upper end of the ratio is infinite if the
    baseline never failed, or hardly ever.

    Args:
        counts: failures and pictures.
        baseline: failures and pictures of the baseline.
        level: chance that neither end is ever missed.

    >>> difference, ratio = contrast_intervals((20, 30), (10, 100))
    >>> [round(end, 2) for end in difference], [round(end, 1) for end in ratio]
    ([0.24, 0.83], [2.3, 24.7])
    """
    alpha = 0.5 * exp(-_limit(level))
    passes, baseline_passes = (counts[1] - counts[0], counts[1]), (baseline[1] - baseline[0], baseline[1])
    low, high = least_difference(counts, baseline, alpha=alpha), -least_difference(passes, baseline_passes, alpha=alpha)
    inverse = least_ratio(baseline, counts, alpha=alpha)
    return (low, high), (least_ratio(counts, baseline, alpha=alpha), 1.0 / inverse if inverse > SMALLEST_RATIO else float("inf"))


def _edge(failures: int, n_pictures: int, limit: float, *, outside: float) -> float:
    """Return where the logarithmic bet reaches the limit, between the observed rate and 0 or 1; rounded outwards."""
    inside = failures / n_pictures
    for _ in range(HALVINGS):
        middle = 0.5 * (outside + inside)
        outside, inside = (outside, middle) if _log_bet(failures, n_pictures, middle) < limit else (middle, inside)
    return outside


def _log_bet(failures: int, n_pictures: int, rate: float) -> float:
    from scipy.special import betaln

    passes = n_pictures - failures
    mixed = float(betaln(failures + PRIOR, passes + PRIOR) - betaln(PRIOR, PRIOR))
    return mixed - (failures * log(rate) if failures else 0.0) - (passes * log1p(-rate) if passes else 0.0)


def _limit(level: float) -> float:
    if not 0.0 < level < 1.0:
        raise InputError("A confidence level must lie in (0, 1).", given=level)
    return -log1p(-level)
