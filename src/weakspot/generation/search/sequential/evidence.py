"""Evidence that a caption fails more often than the baseline, when both rates are only known from images.

An e-value is what a bet against a hypothesis has paid so far, starting from 1; if the hypothesis is true, it pays at most 1 on
average at whatever time one stops. The hypothesis here is that the caption's rate is at most the baseline's, which is unknown. For
every rate p that the baseline may have there are two bets: one that the caption's rate is above p (likelihood ratios of higher
rates, averaged), and one that the baseline's rate is below p. Images of the two are generated independently, so the product is a bet
against the hypothesis with that p, and the least product over all p is a bet against the hypothesis, in whatever order and number
images are generated.

The bet on the baseline keeps a quarter of its stake back. Near the baseline's own rate there is nothing to win, and what is kept
bounds the loss there to a factor of 4, however many baseline images there are.

The rates p are covered by cells. In a cell the caption is held against the upper edge and the baseline against the lower one, so
that the result is valid for every p of the cell and not only for those that were computed.

Confidence sequences: intervals of a rate, of a difference and of a ratio that may be looked at after every image.

For every possible rate p there is a bet against it: the chance of the predictions averaged over all rates (by Jeffreys' prior) over
their chance under p. If p is the truth, the bet is fair, and by Ville's inequality it exceeds 1/alpha at any time at all with a
chance of at most alpha. The interval is every p whose bet has not exceeded 1/alpha. Differences and ratios are those that the bets
of `evidence` leave over, so that what is said of them never contradicts what is proven.
"""

from functools import lru_cache
from math import exp, log, log1p

import numpy as np

from weakspot.core.arrays import DoubleArray, IntArray
from weakspot.core.errors import InputError

N_CELLS = 512
N_ALTERNATIVES = 32
SMALLEST_STEP = 0.03
KEPT_BACK = 0.25
DISTINCT_COUNTS = 4096
HALVINGS = 18


def log_evidence(
    failures: float, n_images: int, baseline_failures: float, n_baseline: int
) -> float:
    """Return the natural logarithm of the e-value against "the caption fails at most as often as the baseline".

    Args:
        failures: of the caption so far; a fraction if they are only expected.
        n_images: of the caption so far.
        baseline_failures: of the baseline so far.
        n_baseline: images of the baseline so far.

    >>> round(log_evidence(12, 16, 10, 100), 1)
    11.3
    >>> log_evidence(1, 16, 10, 100) < 0
    True
    """
    return _log_evidence_at(
        np.arange(1, N_CELLS + 1), (failures, n_images), (baseline_failures, n_baseline)
    )


def least_difference(counts: tuple[int, int], baseline: tuple[int, int], *, alpha: float) -> float:
    """Return the largest d for which the e-value against "the rate is at most the baseline's plus d" is at least 1 / alpha.

    Above 0 exactly if the e-value against "at most as often" is at least 1 / alpha.

    Args:
        counts: failures and images.
        baseline: failures and images of the baseline.
        alpha: chance that the truth is ever below.

    >>> round(least_difference((12, 16), (10, 100), alpha=0.05), 2)
    0.25
    """
    upper_edges = _edges()[1:]
    # A difference is only as fine as cells are; it is rounded down.
    low, high = -1.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        is_excluded = _log_evidence_at(
            _next_edges(upper_edges + middle), counts, baseline
        ) >= -np.log(alpha)
        low, high = (middle, high) if is_excluded else (low, middle)
    return low


def least_ratio(counts: tuple[int, int], baseline: tuple[int, int], *, alpha: float) -> float:
    """Return the largest r for which the e-value against "the rate is at most r times the baseline's" is at least 1 / alpha.

    >>> round(least_ratio((12, 16), (10, 100), alpha=0.05), 1)
    2.5
    """
    upper_edges = _edges()[1:]
    # Halved on a scale on which infinity is 1.
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        reached = _next_edges(upper_edges * (middle / (1.0 - middle)))
        is_excluded = _log_evidence_at(reached, counts, baseline) >= -np.log(alpha)
        low, high = (middle, high) if is_excluded else (low, middle)
    return low / (1.0 - low)


def _log_evidence_at(
    reached: IntArray, counts: tuple[float, int], baseline: tuple[float, int]
) -> float:
    """Return the logarithmic e-value when the caption is held against these edges, one a cell."""
    for failures, n_images in (counts, baseline):
        if not 0 <= failures <= n_images:
            raise InputError(
                "Counts must satisfy 0 <= failures <= images.", given=(failures, n_images)
            )
    return float(np.min(_log_above(*counts)[reached] + _log_below(*baseline)))


@lru_cache(maxsize=DISTINCT_COUNTS)
def _log_above(failures: float, n_images: int) -> DoubleArray:
    """Return the logarithmic bet that a rate is above each edge, and last that it is above a negative one [N_CELLS + 2].

    It is infinite where the rate is surely above, and 0 for the edge 1, above which nothing is.
    """
    bets = np.zeros(N_CELLS + 2)
    passed = (n_images - failures) * np.log1p(-_steps())
    bets[1:N_CELLS] = _log_mean(failures * _log_rises() + passed)
    bets[0] = np.inf if failures else float(_log_mean(passed))
    bets[-1] = np.inf
    return bets


@lru_cache(maxsize=DISTINCT_COUNTS)
def _log_below(failures: float, n_images: int) -> DoubleArray:
    """Return the logarithmic bet that a rate is below the lower edge of every cell [N_CELLS], part of the stake kept back."""
    bets = np.zeros(N_CELLS)
    # By symmetry: the rate of passes is above what the edge leaves of 1, which is another edge.
    plain = _log_mean((n_images - failures) * _log_rises() + failures * np.log1p(-_steps()))[::-1]
    bets[1:] = np.logaddexp(np.log(KEPT_BACK), np.log1p(-KEPT_BACK) + plain)
    return bets


@lru_cache(maxsize=1)
def _log_rises() -> DoubleArray:
    """Return the logarithms of alternatives over the inner edges [N_CELLS - 1, N_ALTERNATIVES]."""
    edges = _edges()[1:-1, None]
    return np.asarray(np.log1p(_steps() * (1.0 - edges) / edges), dtype=np.float64)


@lru_cache(maxsize=1)
def _steps() -> DoubleArray:
    """Return how far alternatives are [N_ALTERNATIVES], as shares of the way from a rate to one; small ones are closer together."""
    places = (np.arange(N_ALTERNATIVES) + 0.5) / N_ALTERNATIVES
    return np.asarray(SMALLEST_STEP ** (1.0 - places), dtype=np.float64)


@lru_cache(maxsize=1)
def _edges() -> DoubleArray:
    """Return the edges of cells, which are closest near 0 and 1, where rates are known best."""
    return np.asarray(np.sin(np.linspace(0.0, np.pi / 2, N_CELLS + 1)) ** 2, dtype=np.float64)


def _next_edges(rates: DoubleArray) -> IntArray:
    """Return the first edge that is not below each rate: bets against higher rates pay less, so this errs on the safe side."""
    found = np.minimum(np.searchsorted(_edges(), rates), N_CELLS)
    return np.where(rates < 0.0, N_CELLS + 1, found)


def _log_mean(values: DoubleArray) -> DoubleArray:
    largest = values.max(axis=-1)
    return np.asarray(
        largest + np.log(np.mean(np.exp(values - largest[..., None]), axis=-1)), dtype=np.float64
    )


PRIOR = 0.5
INTERVAL_HALVINGS = 44
SMALLEST_RATIO = 1e-4


def rate_interval(failures: int, n_images: int, *, level: float = 0.95) -> tuple[float, float]:
    """Return an interval of a rate that holds at all times at once; (0, 1) without images.

    Args:
        failures: so far.
        n_images: so far.
        level: chance that the interval never excludes the truth, however long one goes on.

    >>> low, high = rate_interval(8, 10)
    >>> round(low, 3), round(high, 3)
    (0.342, 0.991)
    """
    limit = _limit(level)
    if not 0 <= failures <= n_images:
        raise InputError("Counts must satisfy 0 <= failures <= images.", given=(failures, n_images))
    low = _edge(failures, n_images, limit, outside=0.0) if failures else 0.0
    return low, _edge(failures, n_images, limit, outside=1.0) if failures < n_images else 1.0


def contrast_intervals(
    counts: tuple[int, int], baseline: tuple[int, int], *, level: float = 0.95
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return intervals of a rate minus the baseline's and of a rate over the baseline's; both hold at all times at once.

    Either end is missed with a chance of at most half of what the level leaves. The upper end of the ratio is infinite if the
    baseline never failed, or hardly ever.

    Args:
        counts: failures and images.
        baseline: failures and images of the baseline.
        level: chance that neither end is ever missed.

    >>> difference, ratio = contrast_intervals((20, 30), (10, 100))
    >>> [round(end, 2) for end in difference], [round(end, 1) for end in ratio]
    ([0.24, 0.83], [2.3, 24.7])
    """
    alpha = 0.5 * exp(-_limit(level))
    passes, baseline_passes = (
        (counts[1] - counts[0], counts[1]),
        (baseline[1] - baseline[0], baseline[1]),
    )
    low, high = (
        least_difference(counts, baseline, alpha=alpha),
        -least_difference(passes, baseline_passes, alpha=alpha),
    )
    inverse = least_ratio(baseline, counts, alpha=alpha)
    return (low, high), (
        least_ratio(counts, baseline, alpha=alpha),
        1.0 / inverse if inverse > SMALLEST_RATIO else float("inf"),
    )


def _edge(failures: int, n_images: int, limit: float, *, outside: float) -> float:
    """Return where the logarithmic bet reaches the limit, between the observed rate and 0 or 1; rounded outwards."""
    inside = failures / n_images
    for _ in range(INTERVAL_HALVINGS):
        middle = 0.5 * (outside + inside)
        outside, inside = (
            (outside, middle) if _log_bet(failures, n_images, middle) < limit else (middle, inside)
        )
    return outside


def _log_bet(failures: int, n_images: int, rate: float) -> float:
    from scipy.special import betaln

    passes = n_images - failures
    mixed = float(betaln(failures + PRIOR, passes + PRIOR) - betaln(PRIOR, PRIOR))
    return (
        mixed
        - (failures * log(rate) if failures else 0.0)
        - (passes * log1p(-rate) if passes else 0.0)
    )


def _limit(level: float) -> float:
    if not 0.0 < level < 1.0:
        raise InputError("A confidence level must lie in (0, 1).", given=level)
    return -log1p(-level)
