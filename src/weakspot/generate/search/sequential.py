"""Statistics of rates that are looked at while they are generated: everything here holds at whatever time one stops."""

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from math import exp, log, log1p

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, DoubleArray, IntArray
from weakspot.core.errors import InputError

N_CELLS = 512
N_ALTERNATIVES = 32
MIN_STEP = 0.03
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
    upper_edges, wanted = _edges()[1:], -log(alpha)

    # A difference is only as fine as cells are; it is rounded down.
    return _turning_point(
        lambda step: _log_evidence_at(_next_edges(upper_edges + step), counts, baseline) >= wanted,
        (-1.0, 1.0),
        halvings=HALVINGS,
    )


def least_ratio(counts: tuple[int, int], baseline: tuple[int, int], *, alpha: float) -> float:
    """Return the largest r for which the e-value against "the rate is at most r times the baseline's" is at least 1 / alpha.

    >>> round(least_ratio((12, 16), (10, 100), alpha=0.05), 1)
    2.5
    """
    upper_edges, wanted = _edges()[1:], -log(alpha)

    def is_excluded(place: float) -> bool:
        reached = _next_edges(upper_edges * (place / (1.0 - place)))
        return _log_evidence_at(reached, counts, baseline) >= wanted

    # Halved on a scale on which infinity is 1.
    found = _turning_point(is_excluded, (0.0, 1.0), halvings=HALVINGS)
    return found / (1.0 - found)


def _turning_point(
    holds: Callable[[float], bool], ends: tuple[float, float], *, halvings: int
) -> float:
    """Return the last number from the first end on for which something holds, rounded towards that end."""
    inside, outside = ends
    for _ in range(halvings):
        middle = 0.5 * (inside + outside)
        inside, outside = (middle, outside) if holds(middle) else (inside, middle)
    return inside


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
    return np.asarray(MIN_STEP ** (1.0 - places), dtype=np.float64)


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
MIN_RATIO = 1e-4


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
        1.0 / inverse if inverse > MIN_RATIO else float("inf"),
    )


def _edge(failures: int, n_images: int, limit: float, *, outside: float) -> float:
    """Return where the logarithmic bet reaches the limit, between the observed rate and 0 or 1; rounded outwards."""
    return _turning_point(
        lambda rate: _log_bet(failures, n_images, rate) >= limit,
        (outside, failures / n_images),
        halvings=INTERVAL_HALVINGS,
    )


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


def discovery_rates(log_e_values: Sequence[float] | AnyArray, *, most: int) -> DoubleArray:
    """Return for every e-value the false discovery rate at which it would just be a discovery.

    Args:
        log_e_values: natural logarithms [k].
        most: how many hypotheses there may be, fixed beforehand, at least k.

    >>> discovery_rates([np.log(400.0), np.log(100.0), 0.0], most=10).round(3).tolist()
    [0.025, 0.05, 1.0]
    """
    values = np.asarray(log_e_values, dtype=np.float64)
    if len(values) > most:
        raise InputError(
            "There are more hypotheses than were announced.", given=(len(values), most)
        )
    order = np.argsort(-values, kind="stable")
    with np.errstate(over="ignore"):
        stepped = np.exp(np.log(most) - np.log(np.arange(1, len(values) + 1)) - values[order])
    rates = np.empty_like(values)
    rates[order] = np.minimum.accumulate(stepped[::-1])[::-1]
    return np.asarray(np.minimum(rates, 1.0))


def discoveries(log_e_values: Sequence[float] | AnyArray, *, alpha: float, most: int) -> BoolArray:
    """Return which hypotheses are discoveries when the false discovery rate is held at `alpha`.

    >>> discoveries([np.log(400.0), np.log(100.0), 0.0], alpha=0.05, most=10).tolist()
    [True, True, False]
    """
    return np.less_equal(discovery_rates(log_e_values, most=most), alpha * (1 + 1e-12))


MISS_RATE = 0.1
PLANNED_GAIN = 1.5
NEARLY_NEVER = 0.005


def is_futile(
    failures: int,
    n_images: int,
    *,
    baseline_rate: float,
    smallest_gain: float,
    miss_rate: float = MISS_RATE,
) -> bool:
    """Return whether a caption hardly fails by the smallest gain more often than the baseline.

    Wald's boundary: predictions are at most `miss_rate` times as likely if the caption gains half as much again as the smallest gain
    as if it gains nothing. Of captions with exactly the smallest gain about a third are given up, of those with twice as much 2 %.

    Args:
        failures: of the caption so far.
        n_images: of the caption so far.
        baseline_rate: as estimated.
        smallest_gain: what one would like to find.
        miss_rate: how often a caption with half as much again may be given up.

    >>> is_futile(3, 64, baseline_rate=0.1, smallest_gain=0.1), is_futile(2, 8, baseline_rate=0.1, smallest_gain=0.1)
    (True, False)
    """
    rate = min(max(baseline_rate, NEARLY_NEVER), 1.0 - NEARLY_NEVER)
    gained = min(rate + PLANNED_GAIN * smallest_gain, 0.5 * (1.0 + rate))
    passes = n_images - failures
    return bool(
        failures * np.log(gained / rate) + passes * np.log((1.0 - gained) / (1.0 - rate))
        <= np.log(miss_rate)
    )


def is_same(
    counts: tuple[int, int], other: tuple[int, int], *, margin: float, error_rate: float = MISS_RATE
) -> bool | None:
    """Return whether a rate is at least another one rather than lower by the margin; None as long as images do not tell.

    Wald's test of "equal" against "lower by the margin" on the difference of the two observed rates.

    Args:
        counts: failures and images of the one.
        other: failures and images of the other.
        margin: by how much it would have to be lower to matter.
        error_rate: how often either answer may be wrong.

    >>> is_same((40, 50), (41, 50), margin=0.2), is_same((10, 50), (41, 50), margin=0.2), is_same((3, 4), (4, 4), margin=0.2)
    (True, False, None)
    """
    rates = [(failures + 0.5) / (n_images + 1.0) for failures, n_images in (counts, other)]
    variance = sum(
        rate * (1.0 - rate) / max(n, 1) for rate, (_, n) in zip(rates, (counts, other), strict=True)
    )
    score = margin * (rates[0] - rates[1] + 0.5 * margin) / variance
    bound = np.log((1.0 - error_rate) / error_rate)
    return None if abs(score) < bound else bool(score > 0)


N_STAKES = 12
MIN_STAKE = 0.1
MAX_STAKE = 0.95
PAIRED_HALVINGS = 40
_STAKES = np.linspace(MIN_STAKE, MAX_STAKE, N_STAKES)

Pair = tuple[bool, bool]


def first_pairs(
    before: Sequence[bool | None],
    after: Sequence[bool | None],
    parents: Sequence[Hashable] | None = None,
) -> list[Pair]:
    """Return the first pair of every parent, in the order of places; every place is its own parent if none are given.

    >>> first_pairs([False, False, None, True], [True, False, True, True], ["a", "a", "b", "c"])
    [(False, True), (True, True)]
    """
    names: Sequence[Hashable] = range(len(before)) if parents is None else parents
    found: dict[Hashable, Pair] = {}
    for name, one, other in zip(names, before, after, strict=True):
        if one is not None and other is not None:
            found.setdefault(name, (one, other))
    return list(found.values())


def change_p(gained: int, lost: int, n_pairs: int) -> float:
    """Return a two-sided p-value of "no change" that may be looked at after every pair.

    >>> round(change_p(12, 0, 20), 4), change_p(2, 2, 20)
    (0.0032, 1.0)
    """
    _refuse(gained, lost, n_pairs)
    return min(1.0, exp(-_log_change_bet(gained, lost, n_pairs, 0.0)))


def sequential_change_interval(
    gained: int, lost: int, n_pairs: int, *, level: float = 0.95
) -> tuple[float, float]:
    """Return an interval of the mean change that holds at all times at once; (-1, 1) without pairs.

    >>> low, high = sequential_change_interval(12, 0, 20)
    >>> 0 < low < 0.6 < high < 1
    True
    """
    _refuse(gained, lost, n_pairs)
    limit = -log(1.0 - level)
    if not n_pairs:
        return -1.0, 1.0
    return _change_edge((gained, lost, n_pairs), limit, -1.0), _change_edge(
        (gained, lost, n_pairs), limit, 1.0
    )


def _change_edge(counts: tuple[int, int, int], limit: float, outside: float) -> float:
    """Return where the bets reach the limit between the observed change and an end; rounded outwards."""
    gained, lost, n_pairs = counts
    change = (gained - lost) / n_pairs
    if change == outside:
        return outside
    return _turning_point(
        lambda mean: _log_change_bet(*counts, mean) >= limit,
        (outside, change),
        halvings=PAIRED_HALVINGS,
    )


def _log_change_bet(gained: int, lost: int, n_pairs: int, mean: float) -> float:
    same = n_pairs - gained - lost
    stakes = np.concatenate([_STAKES / (1.0 + mean), -_STAKES / (1.0 - mean)])
    paid = (
        gained * np.log1p(stakes * (1.0 - mean))
        + lost * np.log1p(-stakes * (1.0 + mean))
        + same * np.log1p(-stakes * mean)
    )
    largest = float(paid.max())
    return largest + log(float(np.mean(np.exp(paid - largest))))


def _refuse(gained: int, lost: int, n_pairs: int) -> None:
    if min(gained, lost) < 0 or gained + lost > n_pairs:
        raise InputError("Counts must satisfy 0 <= gained + lost <= pairs.", given=(gained, lost))
