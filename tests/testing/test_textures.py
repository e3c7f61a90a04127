import numpy as np
import pytest

from weakspot.testing.textures import TEXTURES


@pytest.mark.parametrize("name", TEXTURES)
def test_textures__muted_colours_of_the_right_shape(name):
    pixels = TEXTURES[name](48, np.random.default_rng(0))
    assert pixels.shape == (48, 48, 3)
    assert pixels.min() > 20
    assert pixels.max() < 225
    # An object's paint differs from every background by its saturation.
    assert np.ptp(pixels, axis=2).max() < 90


@pytest.mark.parametrize("name", ["striped", "checked", "dotted", "grassy", "wavy", "brick"])
def test_textures__the_generator_decides_details(name):
    first, second = (TEXTURES[name](48, np.random.default_rng(seed)) for seed in (1, 2))
    assert not np.array_equal(first, second)
    assert first.mean() == pytest.approx(second.mean(), abs=12)
