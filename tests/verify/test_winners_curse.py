import numpy as np
import pytest

from weakspot.core.evidence import Evidence, Interval, Verdict
from weakspot.core.slices import DataUse
from weakspot.core.statistics import fisher_p
from weakspot.verify.holdout import adjust_gap, with_adjusted_gaps

TABLES = {"strong": (18, 20, 10, 100), "weak": (8, 20, 12, 100)}


def entry(name, *, verdict=Verdict.CONFIRMED, n_tested=1, **more):
    failures, n_inside, others, n_outside = TABLES[name]
    p_value = fisher_p(*TABLES[name])
    values = {
        "slice_id": name,
        "verifier": "holdout",
        "measured_on": DataUse(name="confirmation", n_samples=120, digest="d"),
        "n_inside": n_inside,
        "failures_inside": failures,
        "n_outside": n_outside,
        "failures_outside": others,
        "rate_inside": failures / n_inside,
        "rate_outside": others / n_outside,
        "interval_inside": Interval(low=0.0, high=1.0),
        "interval_outside": Interval(low=0.0, high=1.0),
        "gap": failures / n_inside - others / n_outside,
        "p_value": p_value,
        "q_value": min(1.0, p_value * n_tested),
        "n_tested": n_tested,
        "verdict": verdict,
    }
    return Evidence(**{**values, **more})


def test_with_adjusted_gaps__alone__limit_is_alpha():
    (adjusted,) = with_adjusted_gaps([entry("weak")], alpha=0.05)
    assert adjusted.adjusted_gap == adjust_gap(TABLES["weak"], largest_p=0.05)[0]
    assert adjusted.headline_gap == adjusted.adjusted_gap < adjusted.gap


def test_with_adjusted_gaps__ten_tested_together__limit_is_a_tenth():
    (adjusted,) = with_adjusted_gaps([entry("weak", n_tested=10)], alpha=0.05)
    assert adjusted.adjusted_gap == adjust_gap(TABLES["weak"], largest_p=0.005)[0]


def test_with_adjusted_gaps__last_one_accepted_sets_the_limit_of_all():
    weak = entry("weak", q_value=fisher_p(*TABLES["weak"]) * 4 / 2)
    strong = entry("strong", q_value=fisher_p(*TABLES["strong"]) * 4)
    _, adjusted = with_adjusted_gaps([strong, weak], alpha=0.05)
    by_the_last, by_the_first = (
        adjust_gap(TABLES["weak"], largest_p=limit)[0] for limit in (0.05 * 2 / 4, 0.05 / 4)
    )
    assert adjusted.adjusted_gap == by_the_last != by_the_first


def test_with_adjusted_gaps__weight_moves_the_limit():
    light = entry("weak", weight=0.5, q_value=fisher_p(*TABLES["weak"]) / 0.5)
    (adjusted,) = with_adjusted_gaps([light], alpha=0.05)
    assert adjusted.adjusted_gap == pytest.approx(
        adjust_gap(TABLES["weak"], largest_p=0.025)[0], abs=1e-12
    )


def test_with_adjusted_gaps__not_confirmed__left_as_it_is():
    refused = entry("weak", verdict=Verdict.NOT_CONFIRMED)
    assert with_adjusted_gaps([refused], alpha=0.05) == (refused,)


def test_with_adjusted_gaps__groups__counted_instead_of_images():
    grouped = entry("strong", groups_inside=10, groups_outside=50)
    (adjusted,) = with_adjusted_gaps([grouped], alpha=0.05)
    assert adjusted.adjusted_gap == adjust_gap((9, 10, 5, 50), largest_p=0.05)[0]


def test_with_adjusted_gaps__batches__each_has_its_limit():
    first = entry("weak", batch=1, n_tested=10)
    second = entry("weak", batch=2)
    adjusted = with_adjusted_gaps([first, second], alpha=0.05)
    assert adjusted[0].adjusted_gap < adjusted[1].adjusted_gap


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
