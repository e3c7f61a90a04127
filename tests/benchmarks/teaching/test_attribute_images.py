import numpy as np
import pytest
from attribute_images import (
    COLOURS,
    FILTERS,
    SIDE,
    place,
    plain_background,
    random_view,
    recolour,
)
from PIL import Image


def shaded_disc() -> Image.Image:
    """A cut-out: a disc of 40 pixels, lighter at the top."""
    down, across = np.mgrid[0:60, 0:60]
    light = (220 - 2 * down).astype(np.uint8)
    alpha = (((down - 30) ** 2 + (across - 30) ** 2 < 20**2) * 255).astype(np.uint8)
    return Image.fromarray(np.dstack([light, light, light, alpha]))


def photograph() -> Image.Image:
    down, across = np.mgrid[0:300, 0:400]
    return Image.fromarray(
        np.dstack([down * 255 // 299, across * 255 // 399, (down + across) % 256]).astype(np.uint8)
    )


@pytest.mark.parametrize("colour", list(COLOURS))
def test_recolour__object_has_the_colour_and_keeps_its_shade(colour: str) -> None:
    painted = np.asarray(
        recolour(shaded_disc(), colour, np.random.default_rng(0)), dtype=np.float64
    )

    inside = painted[..., 3] > 0
    assert inside.sum() == 1245
    distance = {
        name: np.abs(painted[inside][:, :3].mean(axis=0) - value).sum()
        for name, value in COLOURS.items()
    }
    assert min(distance, key=distance.__getitem__) == colour
    assert painted[15, 30, :3].sum() > painted[45, 30, :3].sum()


def test_place__square_image_with_the_object_inside() -> None:
    white = Image.new("RGB", (300, 400), "white")

    black = recolour(shaded_disc(), "black", np.random.default_rng(0))
    image = np.asarray(place(black, white, np.random.default_rng(1), scale=(0.5, 0.5)))

    assert image.shape == (SIDE, SIDE, 3)
    dark = image.sum(axis=2) < 300
    assert 0.15 < dark.mean() < 0.22  # a disc across half the side covers pi / 16


def test_plain_background__colour_or_grey() -> None:
    blue = np.asarray(plain_background(np.random.default_rng(0), "blue")).mean(axis=(0, 1))
    grey = np.asarray(plain_background(np.random.default_rng(0))).mean(axis=(0, 1))

    assert blue.argmax() == 2
    assert np.ptp(grey) < 30


def test_random_view__same_seed_same_view() -> None:
    first, second = (
        np.asarray(random_view(photograph(), np.random.default_rng(3))) for _ in range(2)
    )

    assert first.shape == (SIDE, SIDE, 3)
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("name", list(FILTERS))
def test_filters__keep_the_size_and_change_the_image(name: str) -> None:
    view = random_view(photograph(), np.random.default_rng(3))

    made = np.asarray(FILTERS[name](view, np.random.default_rng(0)))

    assert made.shape == (SIDE, SIDE, 3)
    assert (made != np.asarray(view)).any()


def test_filters__light_goes_the_way_the_word_says() -> None:
    view = random_view(photograph(), np.random.default_rng(3))
    light = {
        name: float(np.asarray(FILTERS[name](view, np.random.default_rng(0))).mean())
        for name in ("dark", "clear", "bright")
    }

    assert light["dark"] < 0.4 * light["clear"] < 0.4 * light["bright"]
