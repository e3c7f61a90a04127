import numpy as np
import pytest

from weakspot.testing.shapes import OUTLINES


def _area(outline):
    across, down = outline.T
    return abs(float(across @ np.roll(down, 1) - down @ np.roll(across, 1))) / 2


@pytest.mark.parametrize("kind", OUTLINES)
def test_outlines__fit_the_frame(kind):
    assert np.abs(OUTLINES[kind]).max() <= 1.2


def test_outlines__areas():
    # Circle: pi. Square with a half diagonal of 1.18: 2 * 1.18 ** 2. Cross with arms 0.6 wide and 2 long: 2 * 1.2 - 0.36.
    assert _area(OUTLINES["disc"]) == pytest.approx(3.13, abs=0.02)
    assert _area(OUTLINES["square"]) == pytest.approx(2.785, abs=0.01)
    assert _area(OUTLINES["cross"]) == pytest.approx(2.04, abs=0.01)
    assert 0.5 < _area(OUTLINES["crescent"]) < 1.6
