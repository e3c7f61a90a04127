import numpy as np
import pytest

from weakspot.core.arrays import generator
from weakspot.models.embedded.segmenter import outlined, softened, working_pixels


@pytest.fixture
def photograph():
    """A red ellipse on a grey ground, both with grain, and its true mask."""
    down, across = np.mgrid[0:240, 0:320]
    truth = ((down - 130) / 55) ** 2 + ((across - 150) / 80) ** 2 < 1
    pixels = np.where(truth[..., None], (190, 40, 40), (120, 125, 120)).astype(float)
    pixels += 12 * generator(2, "grain").standard_normal(pixels.shape)
    return np.clip(pixels, 0, 255).astype(np.uint8), truth


def _rough(truth):
    """Return what a grid of 16 x 16 sees of a mask: above zero where nearly all of a cell is covered."""
    height, width = truth.shape
    cells = truth.reshape(16, height // 16, 16, width // 16).mean(axis=(1, 3))
    return np.where(cells > 0.8, np.maximum(cells, 0.2), -1.0).astype(np.float32)


def _overlap(first, second):
    return (first & second).sum() / (first | second).sum()


def test_outlined__finds_the_edge_that_a_rough_region_misses(photograph):
    pixels, truth = photograph
    found = outlined(working_pixels(pixels), _rough(truth))
    soft = softened(pixels, found.exact)
    assert _overlap(softened(pixels, found.rough) > 0.5, truth) < 0.93
    assert _overlap(soft > 0.5, truth) > 0.96


def test_softened__full_inside_empty_outside_soft_between(photograph):
    pixels, truth = photograph
    soft = softened(pixels, outlined(working_pixels(pixels), _rough(truth)).exact)
    assert soft.shape == truth.shape
    assert soft[130, 150] == 1.0
    assert soft[5, 5] == 0.0
    assert 0.001 < ((soft > 0.02) & (soft < 0.98)).mean() < 0.05


def test_outlined__region_of_the_whole_image_stays(photograph):
    pixels, _ = photograph
    found = outlined(working_pixels(pixels), np.ones((16, 16), dtype=np.float32))
    assert found.exact.all()


def test_outlined__same_twice(photograph):
    pixels, truth = photograph
    first, second = (outlined(working_pixels(pixels), _rough(truth)).exact for _ in range(2))
    np.testing.assert_array_equal(first, second)
