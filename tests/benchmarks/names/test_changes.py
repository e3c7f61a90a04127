import numpy as np
import pytest
from names import changes
from names.worlds import colour_share
from PIL import Image

GREY = Image.new("RGB", (96, 96), (120, 120, 120))


def scene():
    draws = np.random.default_rng(0)
    return Image.fromarray(draws.integers(60, 200, (96, 96, 3), dtype=np.uint8))


@pytest.mark.parametrize(
    "change",
    [
        changes.write_text, changes.stick_label, changes.darken, changes.overexpose, changes.black_and_white, changes.sketch,
        changes.paint, changes.blur, changes.pixelate, changes.add_noise, changes.zoom_in, changes.move_away,
        changes.turn_green, changes.turn_red, changes.turn_purple,
    ],
)  # fmt: skip
def test_changes__same_seed_same_image_and_another_than_before(change):
    made = [change(scene(), np.random.default_rng(seed)).tobytes() for seed in (1, 1)]
    assert made[0] == made[1]
    assert made[0] != scene().tobytes()


def test_changes__do_what_they_say():
    draws = np.random.default_rng(3)
    means = [
        np.asarray(change(GREY, draws)).mean() for change in (changes.darken, changes.overexpose)
    ]
    assert means[0] < 40
    assert means[1] > 240
    colours = np.asarray(changes.black_and_white(scene(), draws))
    assert (colours[..., 0] == colours[..., 2]).all()
    assert np.asarray(changes.blur(scene(), draws)).std() < 0.5 * np.asarray(scene()).std()


def test_colour_share__of_the_middle():
    assert colour_share(Image.new("RGB", (224, 224), (200, 20, 20)), "red") == 1.0
    assert colour_share(Image.new("RGB", (224, 224), (20, 20, 200)), "red") == 0.0
    assert colour_share(Image.new("RGB", (224, 224), (250, 200, 200)), "red") == 0.0
    assert colour_share(Image.new("RGB", (224, 224), (20, 20, 200)), "blue") == 1.0


def test_turn_red__green_fruit_and_nothing_grey():
    draws = np.random.default_rng(0)
    fruit = changes.turn_red(Image.new("RGB", (224, 224), (120, 150, 40)), draws)
    assert colour_share(fruit, "red") == 1.0
    assert changes.turn_red(GREY, draws).tobytes() == GREY.tobytes()


def test_turn_purple__orange_fruit_and_nothing_grey():
    draws = np.random.default_rng(0)
    fruit = changes.turn_purple(Image.new("RGB", (8, 8), (250, 140, 20)), draws)
    red, green, blue = fruit.getpixel((0, 0))
    assert blue > green
    assert red > green
    assert changes.turn_purple(GREY, draws).tobytes() == GREY.tobytes()
