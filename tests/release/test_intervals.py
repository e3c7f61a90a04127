import numpy as np
import pytest

from weakspot.release.intervals import accuracy_interval, gap_interval, paired_interval, shared_level


def test_shared_level__keeps_the_chance_of_any_miss():
    assert shared_level(0.95, 10) == pytest.approx(0.995)
    assert shared_level(0.95, 0) == 0.95


def test_accuracy_interval__of_nothing_says_nothing():
    interval = accuracy_interval(0, 0, level=0.95)
    assert (interval.low, interval.high) == (0.0, 1.0)


def test_gap_interval__covers_at_least_as_often_as_it_says():
    draws, inside, outside = np.random.default_rng(1), 0.3, 0.1
    n_covered = 0
    for _ in range(400):
        table = (int(draws.binomial(30, inside)), 30, int(draws.binomial(120, outside)), 120)
        interval = gap_interval(table, level=0.95)
        n_covered += interval.low <= inside - outside <= interval.high
    assert n_covered >= 376


@pytest.mark.parametrize("table", [(0, 0, 0, 0), (5, 5, 0, 5), (0, 5, 5, 5)])
def test_gap_interval__stays_within_its_bounds(table):
    interval = gap_interval(table, level=0.99)
    assert -1.0 <= interval.low <= interval.high <= 1.0


def test_paired_interval__is_that_of_a_change():
    interval = paired_interval(0, 10, 50, level=0.95)
    assert interval.low < -0.2 < interval.high < 0
