import numpy as np
import pytest

from weakspot.core.errors import DataError
from weakspot.testing.scenes import FACTORS, KINDS, OUTLINES, PAINT, RADIUS, TEXTURES, Scene, render


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


def _pixels(**factors):
    return np.asarray(render(Scene(**factors), marked=False), dtype=np.float64)


def _object_mask(colour="red", **factors):
    return np.abs(_pixels(colour=colour, **factors) - PAINT[colour]).max(axis=2) < 30


def test_render__same_scene_same_pixels():
    scene = Scene(background="grassy", instance=3)
    assert render(scene).tobytes() == render(scene).tobytes()
    assert render(scene).tobytes() != render(Scene(background="grassy", instance=4)).tobytes()


@pytest.mark.parametrize(
    "factor", ["colour", "size", "background", "count", "position", "lighting"]
)
def test_render__every_value_looks_different(factor):
    images = [_pixels(**{factor: value}) for value in FACTORS[factor]]
    for place, first in enumerate(images):
        for second in images[place + 1 :]:
            assert (np.abs(first - second).max(axis=2) > 40).mean() > 0.01


def test_render__every_kind_looks_different():
    masks = [_object_mask(kinds=(kind,), size="large") for kind in KINDS]
    for place, first in enumerate(masks):
        assert first.mean() > 0.01
        for second in masks[place + 1 :]:
            assert (first ^ second).sum() / (first | second).sum() > 0.15


def test_render__size_and_count_show_in_the_painted_area():
    areas = [_object_mask(size=size).sum() for size in ("small", "medium", "large")]
    assert areas[0] * 1.8 < areas[1] < areas[2] / 1.5
    counts = [_object_mask(size="small", count=count).sum() for count in ("one", "two", "three")]
    assert counts[1] == pytest.approx(2 * counts[0], rel=0.25)
    assert counts[2] == pytest.approx(3 * counts[0], rel=0.25)


@pytest.mark.parametrize(
    ("position", "across", "down"),
    [("middle", 32, 32), ("left", 15, 32), ("right", 49, 32), ("top", 32, 17), ("bottom", 32, 47)],
)
def test_render__position(position, across, down):
    rows, columns = np.nonzero(_object_mask(size="small", position=position))
    assert columns.mean() == pytest.approx(across, abs=3)
    assert rows.mean() == pytest.approx(down, abs=3)


def test_render__lighting():
    light = {lighting: _pixels(lighting=lighting).mean() for lighting in FACTORS["lighting"]}
    assert light["dark"] < 0.5 * light["normal"]
    assert light["bright"] > 1.2 * light["normal"]


def test_render__three_large_objects_stay_in_the_frame():
    for position in FACTORS["position"]:
        mask = _object_mask(size="large", count="three", position=position)
        assert not mask[[0, -1]].any()
        assert not mask[:, [0, -1]].any()


def test_render__any_size_from_32_pixels():
    assert render(Scene(), side=32).size == (32, 32)
    assert render(Scene(), side=201).size == (201, 201)
    with pytest.raises(DataError, match="32 pixels"):
        render(Scene(), side=31)


def test_tables__cover_the_vocabulary():
    assert set(OUTLINES) == set(KINDS)
    assert set(TEXTURES) == set(FACTORS["background"])
    assert set(PAINT) == set(FACTORS["colour"])
    assert set(RADIUS) == set(FACTORS["size"])
