import math

import pytest

from weakspot_lab.reproduce.averages import average, gain


def test_average__mean_and_interval():
    found = average([1.0, 2.0, 3.0, 4.0, math.nan])
    assert (found.mean, found.n_units) == (2.5, 4)
    assert 1.0 <= found.low < 2.5 < found.high <= 4.0
    assert average([1.0, 2.0, 3.0, 4.0]) == average([1.0, 2.0, 3.0, 4.0])


def test_average__too_few_for_an_interval():
    assert average([1.0]).low is None
    assert (average([2.0, 1.0]).low, average([2.0, 1.0]).high) == (1.0, 2.0)
    assert math.isnan(average([]).mean)


def test_gain__is_paired():
    found = gain([5.0, 6.0, 9.0], [4.0, 5.0, 8.0])
    assert (found.mean, found.low, found.high) == (pytest.approx(1.0),) * 3
