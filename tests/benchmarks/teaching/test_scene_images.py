import numpy as np
import pytest
import scene_images as scenes
from attribute_images import SIDE
from PIL import Image, ImageDraw

WHITE = Image.new("RGB", (300, 240), (255, 255, 255))


@pytest.fixture
def disc():
    made = Image.new("RGBA", (120, 120), (0, 0, 0, 0))
    ImageDraw.Draw(made).ellipse((10, 10, 110, 110), fill=(200, 40, 40, 255))
    return made


def values(image):
    return np.asarray(image, dtype=np.float64)


@pytest.mark.parametrize("kind", list(scenes.GROUNDS))
def test_grounds__fill_the_image_and_differ_from_draw_to_draw(kind):
    first, again, other = (scenes.GROUNDS[kind](np.random.default_rng(s)) for s in (1, 1, 2))
    assert first.size == (SIDE, SIDE)
    assert first.mode == "RGB"
    assert first.tobytes() == again.tobytes() != other.tobytes()


@pytest.mark.parametrize("kind", scenes.PATTERNS)
def test_pattern__both_colours_have_a_share(kind):
    found = scenes.pattern(kind, np.random.default_rng(0))
    assert set(np.unique(found)) == {0.0, 1.0}
    assert 0.1 < found.mean() < 0.9


@pytest.mark.parametrize("kind", list(scenes.SURFACES))
def test_surfaces__keep_the_outline_and_change_what_is_inside(disc, kind):
    made = scenes.SURFACES[kind](disc, np.random.default_rng(0))
    before, after = values(disc), values(made)
    assert np.array_equal(before[..., 3], after[..., 3])
    assert np.abs(before[60, 60, :3] - after[60, 60, :3]).sum() > 40


def red_share(image):
    rgb = values(image)
    return float(((rgb[..., 0] > 150) & (rgb[..., 1] < 100)).mean())


def test_several_and_heap__show_a_thing_many_times(disc):
    one, nine = (scenes.several(disc, WHITE, count) for count in (1, 9))
    columns = values(nine)[SIDE // 6, :, 1] < 128
    assert np.diff(columns.astype(int)).clip(0).sum() == 3
    assert red_share(one) > 0.5
    assert red_share(scenes.heap(disc, WHITE, np.random.default_rng(0))) > 0.4


def test_cut_off_and_hide__leave_a_part_of_the_thing(disc):
    rng = np.random.default_rng(0)
    whole = scenes.several(disc, WHITE, 1)
    half = scenes.cut_off(disc, WHITE, rng)
    assert 0 < red_share(half) < 0.75 * red_share(whole)
    cover = Image.new("RGBA", (50, 50), (20, 20, 200, 255))
    assert 0 < red_share(scenes.hide(whole, cover, rng)) < 0.7 * red_share(whole)


def test_rain_darkens_and_overexposure_burns_out():
    grey = Image.new("RGB", (SIDE, SIDE), (120, 120, 120))
    rng = np.random.default_rng(0)
    assert values(scenes.rain(grey, rng)).mean() < 110
    assert values(scenes.overexpose(grey, rng)).min() == 255


def test_clutter_and_blur(disc):
    rng = np.random.default_rng(0)
    assert 0.1 < red_share(scenes.clutter([disc], WHITE, rng)) < 0.95
    noisy = Image.fromarray(rng.integers(0, 256, (300, 300, 3), dtype=np.uint8))
    assert values(scenes.blurred_ground(noisy, rng)).std() < values(noisy).std() / 4
