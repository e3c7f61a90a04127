import numpy as np
import pytest

from weakspot.core.statistics import fisher_p, mcnemar_p
from weakspot.project.comparison import (
    SlicePredictions,
    differences,
    measure_slices,
    paired_interval,
)

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


def test_paired_interval__covers_the_truth_as_often_as_promised():
    draws = np.random.default_rng(0)
    covered = 0
    for _ in range(1000):
        hard = draws.random(40) < 0.3
        first, second = hard | (draws.random(40) < 0.2), hard & (draws.random(40) < 0.8)
        low, high = paired_interval(first, second)
        covered += low <= 0.44 - 0.24 <= high
    assert 0.93 <= covered / 1000 <= 0.99


def _repeated(n_times):
    """The same predictions, every sample seen several times, and which belong together."""
    given = _predictions()
    return _predictions(
        inside=tuple(np.repeat(given.inside, n_times).tolist()),
        failed={
            name: tuple(np.repeat(one, n_times).tolist()) for name, one in given.failed.items()
        },
        groups=tuple(np.repeat(np.arange(40), n_times).tolist()),
    )


def test_measured__objects_seen_several_times_count_once():
    for alone, often in zip(
        measure_slices([_predictions()]), measure_slices([_repeated(5)]), strict=True
    ):
        assert often.n_inside == 5 * alone.n_inside
        assert often.p_value == pytest.approx(alone.p_value)
        assert often.interval_inside.low == pytest.approx(alone.interval_inside.low)
        assert often.interval_outside.high == pytest.approx(alone.interval_outside.high)
    few = measure_slices([_repeated(5)], min_support=21)
    assert all(one.q_value == 1.0 for one in few)


def test_differences__objects_seen_several_times_count_once():
    (alone,), (often,) = differences([_predictions()]), differences([_repeated(5)])
    assert often.p_value == pytest.approx(alone.p_value)
    assert often.difference == pytest.approx(alone.difference)
    assert often.interval.low == pytest.approx(alone.interval.low, abs=0.01)
    assert often.interval.high == pytest.approx(alone.interval.high, abs=0.01)
