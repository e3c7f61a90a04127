"""Evidence that a caption fails more often than the baseline, when both rates are only known from pictures.

An e-value is what a bet against a hypothesis has paid so far, starting from 1; if the hypothesis is true, it pays at most 1 on
average at whatever time one stops. The hypothesis here is that the caption's rate is at most the baseline's, which is unknown. For
every rate p that the baseline may have there are two bets: one that the caption's rate is above p (likelihood ratios of higher
rates, averaged), and one that the baseline's rate is below p. Pictures of the two are drawn independently, so the product is a bet
against the hypothesis with that p, and the least product over all p is a bet against the hypothesis, in whatever order and number
pictures are drawn.

The bet on the baseline keeps a quarter of its stake back. Near the baseline's own rate there is nothing to win, and what is kept
bounds the loss there to a factor of 4, however many baseline pictures there are.

The rates p are covered by cells. In a cell the caption is held against the upper edge and the baseline against the lower one, so
that the result is valid for every p of the cell and not only for those that were computed.
"""

from functools import lru_cache

import numpy as np

from weakspot.core.arrays import DoubleArray, IntArray
from weakspot.core.errors import InputError

N_CELLS = 512
N_ALTERNATIVES = 32
SMALLEST_STEP = 0.03
KEPT_BACK = 0.25
DISTINCT_COUNTS = 4096
HALVINGS = 18


def log_evidence(failures: float, n_pictures: int, baseline_failures: float, n_baseline: int) -> float:
    """Return the natural logarithm of the e-value against "the caption fails at most as often as the baseline".

    Args:
        failures: of the caption so far; a fraction if they are only expected.
        n_pictures: of the caption so far.
        baseline_failures: of the baseline so far.
        n_baseline: pictures of the baseline so far.

    >>> round(log_evidence(12, 16, 10, 100), 1)
    11.3
    >>> log_evidence(1, 16, 10, 100) < 0
    True
    """
    return _log_evidence_at(np.arange(1, N_CELLS + 1), (failures, n_pictures), (baseline_failures, n_baseline))


def least_difference(counts: tuple[int, int], baseline: tuple[int, int], *, alpha: float) -> float:
    """Return the largest d for which the e-value against "the rate is at most the baseline's plus d" is at least 1 / alpha.

    Above 0 exactly if the e-value against "at most as often" is at least 1 / alpha.

    Args:
        counts: failures and pictures.
        baseline: failures and pictures of the baseline.
        alpha: chance that the truth is ever below.

    >>> round(least_difference((12, 16), (10, 100), alpha=0.05), 2)
    0.25
    """
    upper_edges = _edges()[1:]
    # A difference is only as fine as cells are; it is rounded down.
    low, high = -1.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        is_excluded = _log_evidence_at(_next_edges(upper_edges + middle), counts, baseline) >= -np.log(alpha)
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


def _log_evidence_at(reached: IntArray, counts: tuple[float, int], baseline: tuple[float, int]) -> float:
    """Return the logarithmic e-value when the caption is held against these edges, one a cell."""
    for failures, n_pictures in (counts, baseline):
        if not 0 <= failures <= n_pictures:
            raise InputError("Counts must satisfy 0 <= failures <= pictures.", given=(failures, n_pictures))
    return float(np.min(_log_above(*counts)[reached] + _log_below(*baseline)))


@lru_cache(maxsize=DISTINCT_COUNTS)
def _log_above(failures: float, n_pictures: int) -> DoubleArray:
    """Return the logarithmic bet that a rate is above each edge, and last that it is above a negative one [N_CELLS + 2].

    It is infinite where the rate is surely above, and 0 for the edge 1, above which nothing is.
    """
    bets = np.zeros(N_CELLS + 2)
    passed = (n_pictures - failures) * np.log1p(-_steps())
    bets[1:N_CELLS] = _log_mean(failures * _log_rises() + passed)
    bets[0] = np.inf if failures else float(_log_mean(passed))
    bets[-1] = np.inf
    return bets


@lru_cache(maxsize=DISTINCT_COUNTS)
def _log_below(failures: float, n_pictures: int) -> DoubleArray:
    """Return the logarithmic bet that a rate is below the lower edge of every cell [N_CELLS], part of the stake kept back."""
    bets = np.zeros(N_CELLS)
    # By symmetry: the rate of passes is above what the edge leaves of 1, which is another edge.
    plain = _log_mean((n_pictures - failures) * _log_rises() + failures * np.log1p(-_steps()))[::-1]
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
    """Return the logarithm of the mean of what the last axis holds the logarithms of."""
    largest = values.max(axis=-1)
    return np.asarray(largest + np.log(np.mean(np.exp(values - largest[..., None]), axis=-1)), dtype=np.float64)
