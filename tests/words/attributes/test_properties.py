import numpy as np
import pytest
from PIL import Image

from weakspot.core.errors import ModelError
from weakspot.words.properties import COLOUR_NAMES, SIDE, ImageProperties, colour_codes, measured


def _flat(colour):
    return Image.new("RGB", (40, 30), colour)


def _halves(left, right):
    pixels = np.empty((SIDE, SIDE, 3), dtype=np.uint8)
    pixels[:, : SIDE // 2], pixels[:, SIDE // 2 :] = left, right
    return Image.fromarray(pixels)


def test_measured__flat_grey():
    found = measured(_flat((51, 51, 51)))
    assert found[:5] == pytest.approx([0.2, 0.0, 0.0, 0.0, 0.0], abs=1e-9)
    assert COLOUR_NAMES[int(found[5])] == "grey"
    assert found[6] == 1.0


def test_measured__half_black_half_white():
    brightness, contrast, sharpness, entropy, colourfulness, _, share = measured(
        _halves((0, 0, 0), (255, 255, 255))
    )
    assert brightness == pytest.approx(0.5)
    assert contrast == pytest.approx(0.5)
    assert entropy == pytest.approx(1.0)
    assert colourfulness == pytest.approx(0.0, abs=1e-9)
    assert share == 0.5
    # Two of 254 columns of the inner image have a Laplacian, of 255 and -255.
    assert sharpness == pytest.approx(np.log1p(2 / 254 * 255**2))


def test_measured__colourfulness_of_a_flat_red():
    # red-green = 200, yellow-blue = 100, no spread: 0.3 * sqrt(200^2 + 100^2).
    assert measured(_flat((200, 0, 0)))[4] == pytest.approx(0.3 * np.hypot(200, 100))


def test_measured__blur_is_seen_and_size_makes_no_difference():
    noise = Image.fromarray(
        np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
    )
    soft = noise.resize((32, 32), Image.Resampling.BOX).resize(
        (SIDE, SIDE), Image.Resampling.BICUBIC
    )
    assert measured(noise)[2] > measured(soft)[2] + 3
    assert (
        measured(_flat((9, 200, 30))).tolist()
        == measured(_flat((9, 200, 30)).resize((640, 480))).tolist()
    )


@pytest.mark.parametrize(
    ("colour", "name"),
    [
        ((214, 28, 36), "red"),
        ((246, 134, 16), "orange"),
        ((250, 224, 34), "yellow"),
        ((26, 158, 58), "green"),
        ((30, 200, 200), "turquoise"),
        ((30, 84, 214), "blue"),
        ((128, 44, 170), "purple"),
        ((255, 150, 200), "pink"),
        ((252, 252, 250), "white"),
        ((128, 128, 128), "grey"),
        ((10, 8, 12), "black"),
        ((120, 72, 30), "brown"),
        ((255, 200, 205), "pink"),
        ((120, 10, 10), "red"),
        ((140, 146, 34), "green"),
        ((255, 255, 0), "yellow"),
    ],
)
def test_colour_codes__words_that_people_would_use(colour, name):
    hsv = np.asarray(Image.new("RGB", (1, 1), colour).convert("HSV"))
    assert COLOUR_NAMES[int(colour_codes(hsv)[0, 0])] == name


def test_image_properties__has_the_form_of_an_embedder():
    measuring = ImageProperties()
    prepared = [measuring.prepare(_flat((0, 0, 0))), measuring.prepare(_flat((255, 255, 255)))]
    found = measuring.embed_prepared(prepared)
    assert found.shape == (2, measuring.dimension)
    assert found.dtype == np.float32
    assert found[:, 0].tolist() == [0.0, 1.0]
    assert np.isfinite(found).all()
    assert measuring.embed_prepared([]).shape == (0, measuring.dimension)
    assert (measuring.encoder_id, measuring.has_text, measuring.image_side) == (
        "picture-properties-1",
        False,
        SIDE,
    )
    with pytest.raises(ModelError, match="Phrases have no image properties"):
        measuring.embed_texts(["a photo"])


@pytest.mark.parametrize(
    "image",
    [Image.new("RGB", (1, 1), (7, 7, 7)), Image.new("L", (3, 900), 9), Image.new("RGBA", (5, 5))],
)
def test_measured__odd_images_give_finite_numbers(image):
    assert np.isfinite(measured(image)).all()
