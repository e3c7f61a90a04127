import numpy as np
import pytest

from weakspot.words.attribute_columns import binned, words_column

WORDS = ("low", "middle", "high")


def _binned(numbers, rows, words):
    return binned("size", "metadata", numbers, rows, words)


def test_banded__cut_where_the_reference_has_its_fifths():
    numbers = np.array([1.0, 2, 3, 4, 5, 6, 100, -100, np.nan])
    found = _binned(numbers, np.arange(6), WORDS)
    assert found.attribute.cut_points == (2.0, 5.0)
    assert found.column.to_pylist() == [
        "low",
        "middle",
        "middle",
        "middle",
        "middle",
        "high",
        "high",
        "low",
        None,
    ]
    assert [(value.value, value.low, value.high) for value in found.attribute.values] == [
        ("low", None, 2.0),
        ("middle", 2.0, 5.0),
        ("high", 5.0, None),
    ]
    assert [value.share for value in found.attribute.values] == pytest.approx(
        [2 / 9, 4 / 9, 2 / 9], abs=1e-6
    )
    assert found.attribute.missing_share == pytest.approx(1 / 9, abs=1e-6)


def test_banded__mostly_one_number():
    found = _binned(np.array([0.0, 5, 5, 5, 5, 5, 5, 5, 5, 9]), np.arange(10), WORDS)
    assert found.column.to_pylist() == ["low"] + ["middle"] * 8 + ["high"]
    two = _binned(np.array([5.0, 5, 5, 5, 5, 5, 5, 9]), np.arange(8), WORDS)
    assert [value.value for value in two.attribute.values] == ["middle", "high"]


@pytest.mark.parametrize(
    "numbers", [[3.0, 3.0, 3.0], [np.nan, np.nan, np.nan], [np.nan, 1.0, np.nan]]
)
def test_banded__nothing_to_tell_apart(numbers):
    assert _binned(np.array(numbers), np.arange(3), WORDS) is None


def test_banded__reference_without_numbers_falls_back_to_all_rows():
    found = _binned(np.array([np.nan, np.nan, 1.0, 2, 3, 4, 5]), np.array([0, 1]), WORDS)
    assert found.attribute.cut_points == pytest.approx((1.8, 4.2))


def test_words_column__negative_is_null():
    assert words_column(np.array([1, -1, 0, -2]), ("a", "b")).to_pylist() == ["b", None, "a", None]
