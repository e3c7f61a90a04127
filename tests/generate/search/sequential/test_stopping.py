import numpy as np
import pytest

from weakspot.core.arrays import generator
from weakspot.core.errors import InputError
from weakspot.generate.search.sequential import (
    discoveries,
    discovery_rates,
    is_futile,
    is_same,
)


def given_up(rate: float, *, baseline_rate: float, n_paths: int = 400) -> tuple[float, float]:
    """Return how often a caption is given up within 400 images, and after how many on average."""
    counts = np.cumsum(generator(4, str(rate)).random((n_paths, 400)) < rate, axis=1)
    stops = []
    for path in counts:
        looks = (
            n
            for n in range(8, 401, 8)
            if is_futile(int(path[n - 1]), n, baseline_rate=baseline_rate, smallest_gain=0.1)
        )
        stops.append(next(looks, None))
    n_generated = [400 if stop is None else stop for stop in stops]
    return float(np.mean([stop is not None for stop in stops])), float(np.mean(n_generated))


def test_is_futile__captions_like_the_baseline_are_given_up_soon():
    share, n_generated = given_up(0.1, baseline_rate=0.1)
    assert share > 0.99
    assert n_generated < 50


@pytest.mark.parametrize(("rate", "most"), [(0.2, 0.45), (0.3, 0.04), (0.5, 0.005), (0.9, 0.0)])
def test_is_futile__the_larger_the_gain_the_less_is_missed(rate, most):
    assert given_up(rate, baseline_rate=0.1)[0] <= most


def test_is_futile__says_nothing_without_images_and_at_the_ends():
    assert not is_futile(0, 0, baseline_rate=0.1, smallest_gain=0.1)
    assert is_futile(0, 200, baseline_rate=0.0, smallest_gain=0.1)
    assert not is_futile(100, 100, baseline_rate=1.0, smallest_gain=0.1)


@pytest.mark.parametrize(("shorter", "is_wanted"), [(0.8, True), (0.6, False), (0.1, False)])
def test_is_same__is_rarely_wrong(shorter, is_wanted):
    random = generator(7, str(shorter))
    answers = []
    for _ in range(150):
        first, second = (np.cumsum(random.random(800) < rate) for rate in (shorter, 0.8))
        said = (
            is_same((int(first[n - 1]), n), (int(second[n - 1]), n), margin=0.2)
            for n in range(8, 801, 8)
        )
        answers.append(next(answer for answer in said if answer is not None))
    assert np.mean(np.array(answers) == is_wanted) >= 0.85


def test_discoveries__one_large_value_is_enough_and_several_help_each_other():
    most, alpha = 20, 0.05
    assert discoveries([np.log(400.0)], alpha=alpha, most=most).tolist() == [True]
    assert discoveries([np.log(399.0)], alpha=alpha, most=most).tolist() == [False]
    assert discoveries(np.log([200.0, 200.0, 3.0]), alpha=alpha, most=most).tolist() == [
        True,
        True,
        False,
    ]


def test_discoveries__are_those_whose_rate_is_low_enough():
    values = generator(0, "values").normal(3.0, 3.0, size=30)
    rates = discovery_rates(values, most=40)
    for alpha in (0.01, 0.05, 0.2):
        assert discoveries(values, alpha=alpha, most=40).tolist() == (rates <= alpha).tolist()


def test_discovery_rates__keep_the_order_of_the_values():
    values = generator(1, "values").normal(3.0, 3.0, size=30)
    assert np.all(np.diff(discovery_rates(values, most=30)[np.argsort(-values)]) >= 0)
    assert discovery_rates([], most=5).tolist() == []


def test_discovery_rates__hold_for_values_that_all_depend_on_each_other():
    """All hypotheses are true and share one bet: the worst that dependence can do."""
    n_worlds, m, alpha = 4000, 10, 0.1
    random = generator(2, "shared")
    shared = np.where(random.random(n_worlds) < 0.01, 100.0, 0.0)
    false = [
        discoveries(np.log(np.full(m, max(value, 1e-9))), alpha=alpha, most=m).any()
        for value in shared
    ]
    assert np.mean(false) <= alpha


def test_discovery_rates__refuse_more_than_was_announced():
    with pytest.raises(InputError):
        discovery_rates([0.0, 0.0], most=1)
