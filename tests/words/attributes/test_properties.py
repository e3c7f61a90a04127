import numpy as np
import pytest
from PIL import Image, ImageFilter

from weakspot.core.errors import ModelError
from weakspot.words.attribute_columns import LeftOut
from weakspot.words.properties import (
    COLOUR_NAMES,
    SIDE,
    ImageProperties,
    colour_codes,
    measure_looks,
    measure_object,
    measured,
    property_columns,
    size_columns,
)


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


@pytest.fixture(scope="module")
def photograph():
    """Soft hills of colour."""
    draws = np.random.default_rng(0).integers(60, 200, (12, 12, 3), dtype=np.uint8)
    return Image.fromarray(draws).resize((240, 240), Image.Resampling.BICUBIC)


def test_measure_looks__squares(photograph):
    small = photograph.resize((16, 16), Image.Resampling.BOX)
    squares = small.resize((240, 240), Image.Resampling.NEAREST)

    assert measure_looks(squares).squares > 0.95
    assert measure_looks(photograph).squares < 0.5


def test_measure_looks__squares_must_be_so_both_ways(photograph):
    stripes = photograph.resize((16, 240), Image.Resampling.BOX).resize(
        (240, 240), Image.Resampling.NEAREST
    )

    assert measure_looks(stripes).squares < 0.5


def test_measure_looks__noise_is_everywhere_and_edges_are_not(photograph):
    noise = np.random.default_rng(1).normal(0, 40, (240, 240, 3))
    noisy = Image.fromarray(np.clip(np.asarray(photograph) + noise, 0, 255).astype(np.uint8))
    drawn = photograph.copy()
    drawn.paste((0, 0, 0), (100, 100, 140, 140))

    assert measure_looks(noisy).noise > 5
    assert measure_looks(drawn).noise < 1


def test_measure_looks__burnt_is_partly_at_the_end_and_white_is_not(photograph):
    burnt = photograph.point(lambda value: min(255, int(value * 2.0)))
    white = Image.new("RGB", (240, 240), "white")

    assert measure_looks(burnt).burnt > 0.2
    assert measure_looks(white).burnt == 0
    assert measure_looks(white).light == 1
    assert measure_looks(photograph.filter(ImageFilter.GaussianBlur(3))).burnt == 0


def test_measure_looks__one_colour():
    found = measure_looks(Image.new("RGB", (40, 40), (10, 20, 30)))

    assert (found.squares, found.noise, found.burnt, found.light) == (0, 0, 0, 0)


RED, GREEN = COLOUR_NAMES.index("red"), COLOUR_NAMES.index("green")


def test_property_columns__words_for_low_middle_and_high():
    measures = np.array(
        [[number, 0.2, number, 1, 5, RED, 0.9] for number in (0.1, 0.4, 0.5, 0.6, 0.9)],
        dtype=np.float32,
    )
    found = {
        getattr(each, "name", "") or each.attribute.name: each
        for each in property_columns(measures, np.arange(5))
    }
    brightness = found["brightness"]
    assert brightness.column.to_pylist() == [
        "dark",
        "medium brightness",
        "medium brightness",
        "medium brightness",
        "bright",
    ]
    assert brightness.attribute.source == "property"
    assert np.round(brightness.attribute.cut_points, 2).tolist() == [0.34, 0.66]
    assert found["sharpness"].column.to_pylist()[::4] == ["blurry", "sharp"]
    assert found["contrast"] == LeftOut(name="contrast", why="all images are alike in it")
    assert isinstance(found["dominant colour"], LeftOut)


def test_property_columns__dominant_colour_or_mixed_or_no_image():
    colours = [(RED, 0.9), (GREEN, 0.5), (GREEN, 0.2), (np.nan, np.nan)]
    measures = np.array([[0, 0, 0, 0, 0, code, share] for code, share in colours], dtype=np.float32)
    *_, colour = property_columns(measures, np.arange(4))
    assert colour.column.to_pylist() == ["red", "green", "mixed", None]
    assert [(value.value, value.share) for value in colour.attribute.values] == [
        ("red", 0.25),
        ("green", 0.25),
        ("mixed", 0.25),
    ]
    assert colour.attribute.missing_share == 0.25


def test_size_columns__pixels_and_aspect():
    widths, heights = np.array([100, 200, 200, 200, 400, 0]), np.array([400, 200, 200, 200, 100, 0])
    size, aspect = size_columns(widths, heights, np.arange(6))
    assert size == LeftOut(name="image size", why="all images are alike in it")
    assert aspect.column.to_pylist() == [
        "narrow image",
        "medium aspect",
        "medium aspect",
        "medium aspect",
        "wide image",
        None,
    ]


def test_size_columns__megapixels():
    size, aspect = size_columns(
        np.array([100, 1000, 4000]), np.array([100, 1000, 4000]), np.arange(3)
    )
    assert size.column.to_pylist() == ["few pixels", "medium number of pixels", "many pixels"]
    assert size.attribute.cut_points[0] == 0.406
    assert isinstance(aspect, LeftOut)


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
