import numpy as np
import pytest

from weakspot.core.statistics import fisher_p
from weakspot.verify.winners_curse import adjust_gap


def test_adjust_gap__far_beyond_the_limit__nearly_the_measured_one():
    adjusted = adjust_gap((400, 800, 80, 800), largest_p=0.05)
    assert adjusted[0] == pytest.approx(0.4, abs=0.005)
    assert 0.34 < adjusted[1] < 0.38
    assert 0.42 < adjusted[2] < 0.46


def test_adjust_gap__just_at_the_limit__far_below_the_measured_one():
    table = (5, 10, 14, 140)
    adjusted = adjust_gap(table, largest_p=fisher_p(*table))
    assert adjusted[0] < 0.3 < 5 / 10 - 14 / 140
    assert adjusted[1] == 0.0


def test_adjust_gap__stricter_limit__smaller_gap():
    gaps = [adjust_gap((7, 10, 14, 140), largest_p=limit)[0] for limit in (1e-1, 1e-3, 1e-5)]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] > gaps[-1] + 0.05


def test_adjust_gap__least_gap_stricter_than_the_test__counts_as_well():
    plain = adjust_gap((30, 60, 100, 1000), largest_p=0.05)
    assert adjust_gap((30, 60, 100, 1000), largest_p=0.05, least_gap=0.38)[0] < plain[0] - 0.02


@pytest.mark.parametrize("table", [(10, 10, 0, 200), (3, 10, 0, 10), (10, 10, 9, 10)])
def test_adjust_gap__nobody_or_everybody_failed_on_a_side__finite(table):
    adjusted = adjust_gap(table, largest_p=0.05)
    assert 0.0 <= adjusted[1] <= adjusted[0] <= adjusted[2] <= 1.0


@pytest.mark.parametrize(
    ("n_inside", "rate", "gap", "limit"),
    [(10, 0.1, 0.2, 0.0125), (10, 0.02, 0.5, 0.0125), (25, 0.1, 0.2, 0.001), (60, 0.3, 0.2, 0.001)],
)
def test_adjust_gap__given_that_it_was_confirmed__covers_and_does_not_boast(
    n_inside, rate, gap, limit
):
    random, n_outside = np.random.default_rng(16), 150
    draws = zip(
        random.binomial(n_inside, rate + gap, size=40_000).tolist(),
        random.binomial(n_outside, rate, size=40_000).tolist(),
        strict=True,
    )
    adjusted, seen = {}, []
    for inside, outside in draws:
        table = (inside, n_inside, outside, n_outside)
        if table not in adjusted:
            is_confirmed = fisher_p(*table) <= limit
            adjusted[table] = adjust_gap(table, largest_p=limit) if is_confirmed else None
        if adjusted[table] is not None:
            seen.append((adjusted[table], inside / n_inside - outside / n_outside))
    covered = np.mean([one[1] <= gap <= one[2] for one, _ in seen])
    assert len(seen) > 500
    assert covered >= 0.94
    bias, raw_bias = (
        np.mean(values) - gap for values in zip(*((o[0], r) for o, r in seen), strict=True)
    )
    assert -0.08 < bias < raw_bias / 2 + 0.01
