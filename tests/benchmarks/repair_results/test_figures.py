import numpy as np
import pytest
from repair_results.figures import Figures, average, by_unit, in_order, paired


def _figures(arm, *values):
    return [
        Figures(unit=f"world {place}", part="all", arm=arm, values={"gain": value})
        for place, value in enumerate(values)
    ]


def test_average__mean_error_and_interval():
    found = average([0.1, 0.2, 0.3, 0.4])
    assert found.mean == pytest.approx(0.25)
    assert found.error == pytest.approx(0.129099 / 2, abs=1e-5)
    assert 0.1 <= found.low < 0.25 < found.high <= 0.4
    assert found.n_units == 4
    assert found.is_above_zero


def test_average__an_interval_that_holds_zero_is_not_above_it():
    assert not average([-0.2, 0.3, -0.1, 0.1]).is_above_zero


def test_average__values_that_are_missing_do_not_count():
    assert average([0.2, float("nan"), 0.4]).mean == pytest.approx(0.3)
    assert average([]) is None
    assert average([float("nan")]) is None


def test_average__the_same_values_give_the_same_interval():
    values = np.linspace(-1, 1, 21)
    assert average(values) == average(values)


def test_paired__only_units_that_both_have():
    first = by_unit(_figures("a", 0.5, 0.7, 0.9), "all", "a", "gain")
    second = by_unit(_figures("b", 0.4, 0.5), "all", "b", "gain")
    found = paired(first, second)
    assert found.n_units == 2
    assert found.mean == pytest.approx(0.15)


def test_by_unit__figures_without_the_measure_are_passed_over():
    assert (
        by_unit([Figures(unit="w", part="all", arm="a", note="cannot")], "all", "a", "gain") == {}
    )


def test_in_order__first_come_first():
    assert in_order(
        _figures("b", 1) + _figures("a", 1) + _figures("b", 2), lambda one: one.arm
    ) == ("b", "a")
