import numpy as np
import pytest

from weakspot.generate.compose.placing import Cut, tone_of

GREEN, RED = (110, 130, 40), (170, 40, 40)


def _cut(share_green):
    """An object whose left part is green as apples are, and the rest red, in grey surroundings."""
    pixels = np.full((40, 100, 3), 128, dtype=np.uint8)
    pixels[:, 10:90] = RED
    pixels[:, 10 : 10 + round(80 * share_green)] = GREEN
    alpha = np.zeros((40, 100), dtype=np.float32)
    alpha[:, 10:90] = 1.0
    return Cut(pixels=pixels, alpha=alpha)


def test_tone_of__only_parts_that_may_be_called_so_count():
    alone, mixed = tone_of(_cut(1.0), "green"), tone_of(_cut(0.5), "green")
    assert alone == pytest.approx(mixed, abs=0.5)
    assert alone[1] < 0 < alone[2]
    assert tone_of(_cut(0.5), "red")[1] > 40


def test_tone_of__nothing_where_hardly_any_part_may():
    assert tone_of(_cut(0.1), "green") is None
    assert tone_of(_cut(1.0), "blue") is None


def test_tone_of__white_has_no_hue():
    whole = tone_of(_cut(0.5), "white")
    assert tone_of(_cut(1.0), "green")[1] < whole[1] < tone_of(_cut(0.0), "red")[1]
