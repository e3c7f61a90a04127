import numpy as np
import pytest
from PIL import Image

from weakspot.core.errors import ConfigError
from weakspot.models.preprocessing import Preprocessing, preprocessing_from, resize_shorter_side


def _image(width, height):
    return Image.fromarray(
        np.random.default_rng(3).integers(0, 256, (height, width, 3), dtype=np.uint8)
    )


def test_apply__plain_image_scaled_and_normalised():
    image = Image.new("RGB", (4, 4), (255, 0, 51))
    numbers = Preprocessing(height=2, width=2, mean=(0.5, 0.5, 0.0), std=(0.5, 0.25, 1.0)).apply(
        image
    )
    assert numbers.shape == (3, 2, 2)
    assert numbers.dtype == np.float32
    np.testing.assert_allclose(numbers[:, 0, 0], [1.0, -2.0, 0.2], atol=1e-6)


def test_apply__centre_crop_equals_pillow():
    image = _image(50, 30)
    found = Preprocessing(
        height=16,
        width=16,
        resize_side=20,
        resample="bilinear",
        dtype="uint8",
        layout="channels-last",
    ).apply(image)
    expected = image.resize((33, 20), Image.Resampling.BILINEAR).crop((8, 2, 24, 18))
    np.testing.assert_array_equal(found, np.asarray(expected))


def test_apply__half_a_pixel_goes_where_centring_says():
    image = _image(19, 16)
    pixels = np.asarray(image)
    settings = {"height": 16, "width": 16, "dtype": "uint8", "layout": "channels-last"}
    np.testing.assert_array_equal(Preprocessing(**settings).apply(image), pixels[:, 2:18])
    np.testing.assert_array_equal(
        Preprocessing(**settings, centring="down").apply(image), pixels[:, 1:17]
    )


def test_apply__squeezed_equals_pillow():
    image = _image(50, 30)
    found = Preprocessing(
        height=12, width=20, crop="none", dtype="uint8", layout="channels-last"
    ).apply(image)
    np.testing.assert_array_equal(
        found, np.asarray(image.resize((20, 12), Image.Resampling.BICUBIC))
    )


def test_apply__same_size_keeps_every_pixel():
    image = _image(16, 16)
    found = Preprocessing(height=16, width=16, dtype="uint8", layout="channels-last").apply(image)
    np.testing.assert_array_equal(found, np.asarray(image))


def test_apply__bgr_and_grey():
    image = Image.new("RGB", (2, 2), (10, 20, 30))
    assert Preprocessing(height=1, width=1, colour="bgr", dtype="uint8").apply(image)[
        :, 0, 0
    ].tolist() == [30, 20, 10]
    grey = Preprocessing(height=2, width=2, colour="grey").apply(image)
    assert grey.shape == (1, 2, 2)
    np.testing.assert_allclose(grey[0, 0, 0], 18 / 255, atol=1e-6)


def test_apply__small_image_is_enlarged():
    assert Preprocessing(height=8, width=8).apply(_image(3, 2)).shape == (3, 8, 8)


def test_needed_side__crop_and_squeeze():
    assert Preprocessing(height=224, width=224, resize_side=256).needed_side == 256
    assert Preprocessing(height=224, width=224).needed_side == 224
    assert Preprocessing(height=100, width=200, crop="none").needed_side == 200


def test_resize_shorter_side__longer_side_rounded_down():
    assert resize_shorter_side(_image(50, 30), 20).size == (33, 20)
    assert resize_shorter_side(_image(30, 50), 20).size == (20, 33)


def test_preprocessing_from__user_over_model_over_default():
    found = preprocessing_from(
        {"mean": 0.5, "image_side": [10, 12]},
        height=99,
        width=99,
        std=(2.0, 2.0, 2.0),
        resample="box",
    )
    assert (found.height, found.width, found.mean, found.std, found.resample) == (
        10,
        12,
        (0.5,) * 3,
        (2.0,) * 3,
        "box",
    )


def test_preprocessing_from__unknown_option_and_missing_size():
    with pytest.raises(ConfigError, match="centre_crop: there is no such option"):
        preprocessing_from({"centre_crop": True})
    with pytest.raises(ConfigError, match="Set image_side"):
        preprocessing_from({})
    with pytest.raises(ConfigError, match="one whole number of pixels"):
        preprocessing_from({"image_side": 0})


def test_preprocessing_from__all_problems_at_once():
    with pytest.raises(ConfigError) as caught:
        preprocessing_from(
            {
                "image_side": 8,
                "crop": "middle",
                "std": [1.0, 0.0, 1.0],
                "mean": [0.1, 0.2],
                "resize_side": 4,
            }
        )
    message = str(caught.value)
    assert "crop: 'middle'" in message
    assert "std: holds a zero" in message
    assert "mean: [0.1, 0.2]" in message
    with pytest.raises(ConfigError, match="resize_side: 4 is smaller"):
        preprocessing_from({"image_side": 8, "resize_side": 4})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mean": "abc"}, "mean: .* is not one number a channel"),
        ({"std": [1.0, float("nan"), 1.0]}, "std: .* is not one number a channel"),
        ({"scale": "x"}, "scale: 'x' is no number"),
        ({"resize_side": "256"}, "resize_side: '256' is no whole number"),
        ({"image_side": 224.0}, "one whole number"),
        ({"image_side": "224"}, "one whole number"),
    ],
)
def test_preprocessing_from__wrong_kinds_of_value(settings, message):
    with pytest.raises(ConfigError, match=message):
        preprocessing_from({"image_side": 8, **settings})
