import numpy as np

from weakspot.words.attribute_columns import LeftOut
from weakspot.words.properties import COLOUR_NAMES, property_columns, size_columns

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
