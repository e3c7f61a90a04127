import pytest

from weakspot.run.witnesses import above, surely


def test_surely__half_at_the_bound_and_rising():
    scale = [surely(value, 0.2) for value in (0.0, 0.1, 0.2, 0.6, 1.0)]

    assert scale[0] == 0.0
    assert scale[2] == pytest.approx(0.5)
    assert scale[-1] == 1.0
    assert scale == sorted(scale)
    assert surely(0.0, 0.0) == 0.0


def test_above__and_below():
    assert above(2.0, 1.0, width=0.5) > 0.85
    assert above(2.0, 1.0, width=-0.5) < 0.15
    assert above(1e9, 0.0, width=1.0) == pytest.approx(1.0)
