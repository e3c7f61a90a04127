import cv2
import numpy as np
import pytest

from weakspot.core.arrays import generator
from weakspot.generate.compose.edits import WHOLE_IMAGE, blurred, partly_hidden, recoloured
from weakspot.generate.compose.prompts import COLOURS


@pytest.fixture
def shape(shapes):
    planted, true_mask = shapes
    image = planted("disc", background="brick", side=160)
    return np.asarray(image), true_mask(image, "red").astype(np.float32)


def _lab(pixels):
    return cv2.cvtColor(pixels.astype(np.float32) / 255, cv2.COLOR_RGB2LAB)


def _sharpness(pixels):
    return cv2.Laplacian(pixels.astype(np.float32).mean(axis=2), cv2.CV_32F).var()


def _edit(change, value, pixels, seed=0):
    return WHOLE_IMAGE[change, value](pixels, generator(seed, "test"))


@pytest.mark.parametrize("colour", list(COLOURS))
def test_recoloured__moves_the_object_to_the_colour_and_nothing_else(shape, colour):
    pixels, alpha = shape
    new = recoloured(pixels, alpha, colour)
    target = np.array(COLOURS[colour])
    before, after = (
        np.linalg.norm(_lab(one)[alpha > 0.9].mean(axis=0) - target) for one in (pixels, new)
    )
    assert after < 35
    assert colour == "red" or after < before
    nearest = min(
        COLOURS,
        key=lambda name: np.linalg.norm(
            _lab(new)[alpha > 0.9].mean(axis=0) - np.array(COLOURS[name])
        ),
    )
    assert nearest == colour
    assert np.array_equal(new[alpha == 0], pixels[alpha == 0])


def test_recoloured__keeps_the_shading(shape):
    pixels, alpha = shape
    ramp = np.linspace(0.5, 1.0, pixels.shape[1])[None, :, None]
    shaded = (pixels * ramp).astype(np.uint8)
    new = recoloured(shaded, alpha, "green")
    is_object = alpha > 0.9
    assert np.corrcoef(_lab(shaded)[is_object][:, 0], _lab(new)[is_object][:, 0])[0, 1] > 0.9


def test_dark_and_bright__move_the_light(shape):
    pixels, _ = shape
    assert _edit("light", "dark", pixels).mean() < 0.5 * pixels.mean()
    assert _edit("light", "bright", pixels).mean() > 1.25 * pixels.mean()
    assert np.array_equal(_edit("light", "normal", pixels), pixels)


def test_blurred__is_less_sharp_and_more_so_with_strength(shape):
    pixels, _ = shape
    once = _edit("blur", "all", pixels)
    assert _sharpness(once) < 0.2 * _sharpness(pixels)
    assert _sharpness(blurred(pixels, strength=2.0)) < _sharpness(once)


def test_fog__is_paler_with_less_contrast(shape):
    pixels, _ = shape
    fog = _edit("weather", "fog", pixels)
    assert fog.mean() > pixels.mean()
    assert fog.std() < 0.6 * pixels.std()


def test_rain__is_duller_with_fine_streaks_that_are_taller_than_wide(shape):
    pixels, _ = shape
    flat = np.full_like(pixels, 90)
    rain = _edit("weather", "rain", flat).astype(np.float32).mean(axis=2)
    assert np.median(rain) < 90
    assert np.abs(np.diff(rain, axis=1)).mean() > 1.5 * np.abs(np.diff(rain, axis=0)).mean()


def test_snow__has_white_flakes(shape):
    pixels, _ = shape
    snow = _edit("weather", "snow", np.full_like(pixels, 90))
    assert 0.005 < (snow.min(axis=2) > 200).mean() < 0.3


def test_looks__do_what_they_are_called(shape):
    pixels, _ = shape
    grey = _edit("look", "grey", pixels)
    assert np.ptp(grey.astype(int), axis=2).max() == 0
    assert _sharpness(_edit("look", "noisy", pixels)) > 1.5 * _sharpness(pixels)
    coarse = _edit("look", "pixelated", pixels)
    assert len(np.unique(coarse.reshape(-1, 3), axis=0)) <= 28 * 28


def test_partly_hidden__covers_a_third_to_a_half_of_the_object(shape):
    pixels, alpha = shape
    for seed in range(5):
        new = partly_hidden(pixels, alpha, generator(seed, "test"))
        lab = _lab(new)[alpha > 0.9]
        still_red = (lab[:, 1] > 35).mean()
        assert 0.4 < still_red < 0.78
    nothing = np.zeros_like(alpha)
    assert np.array_equal(partly_hidden(pixels, nothing, generator(0, "test")), pixels)


@pytest.mark.parametrize(("change", "value"), list(WHOLE_IMAGE))
def test_edits__are_decided_by_the_seed_and_leave_their_input_alone(shape, change, value):
    pixels, _ = shape
    before = pixels.copy()
    first, again = (_edit(change, value, pixels, seed=3) for _ in range(2))
    assert np.array_equal(first, again)
    assert np.array_equal(pixels, before)
    assert first.shape == pixels.shape
    assert first.dtype == np.uint8


def test_poses__turn_the_image(shape):
    pixels, _ = shape
    assert np.array_equal(_edit("pose", "mirrored", pixels, seed=1), pixels[:, ::-1])
    assert np.array_equal(_edit("pose", "upside down", pixels, seed=1), pixels[::-1, ::-1])
    turned = [_edit("pose", "tilted", pixels, seed=seed) for seed in range(4)]
    assert all(np.abs(one.astype(int) - pixels).mean() > 10 for one in turned)


def test_text__is_written_within_the_image_and_leaves_most_of_it(shape):
    pixels, _ = shape
    for seed in range(6):
        changed = (_edit("text", "over", pixels, seed=seed) != pixels).any(axis=2)
        assert 0.02 < changed.mean() < 0.35
        assert changed.any(axis=0).mean() > 0.5
