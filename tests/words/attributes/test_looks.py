import numpy as np
import pytest
from PIL import Image, ImageFilter

from weakspot.words.properties import measure_looks


@pytest.fixture(scope="module")
def photograph():
    """Soft hills of colour."""
    draws = np.random.default_rng(0).integers(60, 200, (12, 12, 3), dtype=np.uint8)
    return Image.fromarray(draws).resize((240, 240), Image.Resampling.BICUBIC)


def test_measure_looks__squares(photograph):
    small = photograph.resize((16, 16), Image.Resampling.BOX)
    squares = small.resize((240, 240), Image.Resampling.NEAREST)

    assert measure_looks(squares).squares > 0.95
    assert measure_looks(photograph).squares < 0.5


def test_measure_looks__squares_must_be_so_both_ways(photograph):
    stripes = photograph.resize((16, 240), Image.Resampling.BOX).resize(
        (240, 240), Image.Resampling.NEAREST
    )

    assert measure_looks(stripes).squares < 0.5


def test_measure_looks__noise_is_everywhere_and_edges_are_not(photograph):
    noise = np.random.default_rng(1).normal(0, 40, (240, 240, 3))
    noisy = Image.fromarray(np.clip(np.asarray(photograph) + noise, 0, 255).astype(np.uint8))
    drawn = photograph.copy()
    drawn.paste((0, 0, 0), (100, 100, 140, 140))

    assert measure_looks(noisy).noise > 5
    assert measure_looks(drawn).noise < 1


def test_measure_looks__burnt_is_partly_at_the_end_and_white_is_not(photograph):
    burnt = photograph.point(lambda value: min(255, int(value * 2.0)))
    white = Image.new("RGB", (240, 240), "white")

    assert measure_looks(burnt).burnt > 0.2
    assert measure_looks(white).burnt == 0
    assert measure_looks(white).light == 1
    assert measure_looks(photograph.filter(ImageFilter.GaussianBlur(3))).burnt == 0


def test_measure_looks__one_colour():
    found = measure_looks(Image.new("RGB", (40, 40), (10, 20, 30)))

    assert (found.squares, found.noise, found.burnt, found.light) == (0, 0, 0, 0)
