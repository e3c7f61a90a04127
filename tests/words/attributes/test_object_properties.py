import numpy as np
import pytest
from PIL import Image

from weakspot.words.object_properties import measure_object
from weakspot.words.properties import COLOUR_NAMES


def _scene(*, place=(40, 80, 20, 60), colour="red", behind="white", side=120):
    top, bottom, left, right = place
    pixels = np.asarray(Image.new("RGB", (side, side), behind)).copy()
    pixels[top:bottom, left:right] = np.asarray(Image.new("RGB", (1, 1), colour))[0, 0]
    coverage = np.zeros((side, side), dtype=np.float32)
    coverage[top:bottom, left:right] = 1.0
    return Image.fromarray(pixels), coverage


def _share(shares, name):
    return shares[COLOUR_NAMES.index(name)]


def test_measure_object__size_place_and_colours():
    found = measure_object(*_scene())

    assert found.refused == ""
    assert found.share == pytest.approx(1600 / 14400, abs=0.01)
    assert (found.across, found.down) == pytest.approx((40 / 120, 60 / 120), abs=0.01)
    assert found.n_edges == 0
    assert _share(found.colours, "red") > 0.95
    assert _share(found.behind, "white") > 0.95
    assert found.clutter == 0.0


def test_measure_object__edges_of_the_image():
    assert measure_object(*_scene(place=(0, 50, 0, 50))).n_edges == 2
    assert measure_object(*_scene(place=(0, 120, 30, 90))).n_edges == 2


def test_measure_object__cluttered_background():
    image, coverage = _scene()
    noise = np.random.default_rng(0).integers(0, 256, (30, 30, 3), dtype=np.uint8)
    pixels = np.asarray(Image.fromarray(noise).resize((120, 120), Image.Resampling.NEAREST)).copy()
    pixels[coverage > 0] = np.asarray(image)[coverage > 0]

    found = measure_object(Image.fromarray(pixels), coverage)

    assert found.clutter > 0.5
    assert _share(found.colours, "red") > 0.95


def test_measure_object__nothing_behind():
    image, _ = _scene()

    found = measure_object(image, np.ones((120, 120), dtype=np.float32))

    assert found.share == 1.0
    assert found.behind == ()
    assert found.clutter is None


def test_measure_object__too_few_pixels():
    found = measure_object(*_scene(place=(10, 12, 10, 12)))

    assert "too few pixels" in found.refused
    assert found.colours == ()


def test_measure_object__image_of_another_shape():
    image, coverage = _scene()
    wide = image.resize((240, 120))
    mask = np.repeat(coverage, 2, axis=1)

    found = measure_object(wide, mask)

    assert found.across == pytest.approx(40 / 120, abs=0.01)
    assert found.share == pytest.approx(1600 / 14400, abs=0.01)
