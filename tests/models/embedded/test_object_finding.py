from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.arrays import generator
from weakspot.models.embedded.segmenter import Estimator, MaskGate, found_object, window_around

SIDE = 16
CORNERS = 7
FIRST_CUT = -3


@pytest.fixture(scope="module")
def gate():
    return MaskGate.load()


def _scene(height=240, width=240, *, length=60, at=(120, 110)):
    down, across = np.mgrid[0:height, 0:width]
    truth = (down - at[0]) ** 2 + (across - at[1]) ** 2 < length**2
    pixels = np.where(truth[..., None], (200, 60, 40), (90, 110, 95)).astype(float)
    pixels += 10 * generator(3, "grain").standard_normal(pixels.shape)
    return np.clip(pixels, 0, 255).astype(np.uint8), truth


def _tokens_of(image):
    """Return tokens that are the colours of cells, less the usual one, with a little of their own."""
    small = np.asarray(image.resize((SIDE, SIDE)), dtype=float).reshape(-1, 3) - (100, 105, 92)
    random = generator(4, "tokens").standard_normal((SIDE * SIDE, 24))
    cells = np.hstack([small / 30, 0.3 * random])
    return np.vstack([cells.mean(axis=0), cells]).astype(np.float32)


def _overlap(first, second):
    return (first & second).sum() / (first | second).sum()


def test_found_object__large(gate):
    pixels, truth = _scene(length=80)
    assert _overlap(found_object(pixels, _tokens_of, gate).coverage(pixels) > 0.5, truth) > 0.93


def _that_shuns_corners(gate):
    """Return the gate with another choice: the largest region of a first cut that holds no corner."""
    hidden = np.zeros((len(gate.choice.mean), 1))
    hidden[[0, CORNERS, FIRST_CUT]] = [[1.0], [-3.0], [1.0]]
    choice = Estimator(
        mean=np.zeros(len(hidden)),
        spread=np.ones(len(hidden)),
        hidden=hidden,
        hidden_bias=np.zeros(1),
        out=np.ones(1),
        out_bias=np.zeros(1),
    )
    return replace(gate, choice=choice)


def test_found_object__small_one_is_looked_at_again_from_nearer_by(gate):
    pixels, truth = _scene(length=34, at=(150, 90))
    found = found_object(pixels, _tokens_of, _that_shuns_corners(gate))
    top, left, bottom, right = found.window
    assert max(bottom - top, right - left) < 200
    assert _overlap(found.coverage(pixels) > 0.5, truth) > 0.85


def test_found_object__image_that_is_not_square(gate):
    pixels, truth = _scene(200, 320, length=50, at=(90, 220))
    found = found_object(pixels, _tokens_of, gate).coverage(pixels)
    assert found.shape == (200, 320)
    assert _overlap(found > 0.5, truth) > 0.85


def test_window_around__stays_within_the_image():
    cells = np.zeros((SIDE, SIDE), dtype=bool)
    cells[:3, 13:] = True
    top, left, bottom, right = window_around(cells, (160, 320))
    assert (top, right) == (0, 320)
    assert bottom - top >= 30
    assert right - left >= 60


@pytest.mark.parametrize("cells", [np.ones((SIDE, SIDE), dtype=bool), np.eye(SIDE) > 2])
def test_window_around__none_where_it_would_not_be_nearer(cells):
    cells[0, 0] = True
    assert window_around(cells, (40, 40)) is None
