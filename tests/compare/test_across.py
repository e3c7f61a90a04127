import numpy as np
import pytest

from weakspot.compare.across import SlicePredictions, differences, measure_slices, paired_interval
from weakspot.core.statistics import fisher_p, mcnemar_p

GROUPS = tuple(number // 3 for number in range(40))


def _predictions(**changes):
    inside = (True,) * 20 + (False,) * 20
    weak = (True,) * 15 + (False,) * 5 + (True,) * 2 + (False,) * 18
    strong = (True,) * 3 + (False,) * 17 + (True,) * 2 + (False,) * 18
    given = {
        "slice_id": "s",
        "title": "disc: green",
        "found_on": "weak",
        "inside": inside,
        "failed": {"weak": weak, "strong": strong},
    }
    return SlicePredictions(**{**given, **changes})


def test_measured__counts_tests_and_holds():
    weak, strong = measure_slices([_predictions()])
    assert (weak.n_inside, weak.failures_inside, weak.n_outside, weak.failures_outside) == (
        20,
        15,
        20,
        2,
    )
    assert weak.p_value == pytest.approx(fisher_p(15, 20, 2, 20))
    assert weak.q_value == pytest.approx(2 * weak.p_value)
    assert weak.holds
    assert not strong.holds
    assert strong.rate_inside == 0.15


def test_measured__too_few_members_are_not_tested():
    small = _predictions(inside=(True,) * 4 + (False,) * 36)
    found = measure_slices([small, _predictions(slice_id="t")])
    assert [one.q_value for one in found[:2]] == [1.0, 1.0]
    assert found[2].q_value == pytest.approx(2 * found[2].p_value)


def test_differences__paired_on_members_only():
    (found,) = differences([_predictions()])
    assert (found.first, found.second, found.n_samples) == ("weak", "strong", 20)
    assert (found.only_first_fails, found.only_second_fails) == (12, 0)
    assert found.difference == 0.6
    assert found.p_value == pytest.approx(mcnemar_p(12, 0))
    assert 0.25 < found.interval.low < 0.6 < found.interval.high < 0.85


def test_differences__a_slice_without_members_is_left_out():
    assert differences([_predictions(inside=(False,) * 40)]) == ()


def test_paired_interval__covers_the_truth_as_often_as_promised():
    draws = np.random.default_rng(0)
    covered = 0
    for _ in range(1000):
        hard = draws.random(40) < 0.3
        first, second = hard | (draws.random(40) < 0.2), hard & (draws.random(40) < 0.8)
        low, high = paired_interval(first, second)
        covered += low <= 0.44 - 0.24 <= high
    assert 0.93 <= covered / 1000 <= 0.99


def test_measure_slices__images_of_one_object__count_once():
    alone, grouped = (measure_slices([_predictions(groups=groups)])[0] for groups in ((), GROUPS))
    assert grouped.p_value > alone.p_value


def test_differences__images_of_one_object__count_once():
    alone, grouped = (differences([_predictions(groups=groups)])[0] for groups in ((), GROUPS))
    assert grouped.p_value > alone.p_value
