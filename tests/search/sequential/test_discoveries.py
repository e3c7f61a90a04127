import numpy as np
import pytest

from weakspot.core.errors import InputError
from weakspot.core.seeding import generator
from weakspot.search.sequential import discoveries, discovery_rates


def test_discoveries__one_large_value_is_enough_and_several_help_each_other():
    most, alpha = 20, 0.05
    assert discoveries([np.log(400.0)], alpha=alpha, most=most).tolist() == [True]
    assert discoveries([np.log(399.0)], alpha=alpha, most=most).tolist() == [False]
    assert discoveries(np.log([200.0, 200.0, 3.0]), alpha=alpha, most=most).tolist() == [True, True, False]


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
    false = [discoveries(np.log(np.full(m, max(value, 1e-9))), alpha=alpha, most=m).any() for value in shared]
    assert np.mean(false) <= alpha


def test_discovery_rates__refuse_more_than_was_announced():
    with pytest.raises(InputError):
        discovery_rates([0.0, 0.0], most=1)
