import pytest

from weakspot.core.errors import ModelError
from weakspot.models.preprocessing import preprocessing_of_processor


def read(**given):
    return preprocessing_of_processor(given, where="there")


def test_preprocessing_of_processor__clip():
    found = read(
        size={"shortest_edge": 224},
        crop_size={"height": 224, "width": 224},
        do_center_crop=True,
        resample=3,
    )
    assert (found.height, found.width, found.resize_side, found.crop, found.resample) == (
        224,
        224,
        224,
        "centre",
        "bicubic",
    )


def test_preprocessing_of_processor__old_form_with_plain_numbers():
    found = read(size=256, crop_size=224, do_center_crop=True, resample=2, do_normalize=False)
    assert (found.height, found.resize_side, found.crop, found.resample) == (
        224,
        256,
        "centre",
        "bilinear",
    )
    assert (found.mean, found.std) == ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


def test_preprocessing_of_processor__siglip_inside_a_processor_file():
    found = preprocessing_of_processor(
        {"image_processor": {"size": {"height": 384, "width": 256}, "image_mean": [0.5, 0.4, 0.3]}},
        where="x",
    )
    assert (found.height, found.width, found.crop, found.resize_side) == (384, 256, "none", None)
    assert found.mean == (0.5, 0.4, 0.3)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"size": {"longest_edge": 3}},
        {"size": "large"},
        {"size": 224, "resample": 99},
        {"size": 8, "image_mean": 3},
    ],
)
def test_preprocessing_of_processor__unknown(given):
    with pytest.raises(ModelError, match="in an unknown way"):
        read(**given)
