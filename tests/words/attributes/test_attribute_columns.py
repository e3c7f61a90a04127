import datetime

import numpy as np
import pyarrow as pa
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import ConfigError
from weakspot.core.samples import Attribute
from weakspot.words.attribute_columns import (
    AssignedColumn,
    LeftOut,
    binned,
    user_columns,
    with_free_names,
    words_column,
)

WORDS = ("low", "middle", "high")


def _binned(numbers, rows, words):
    return binned("size", "metadata", numbers, rows, words)


def test_banded__cut_where_the_reference_has_its_fifths():
    numbers = np.array([1.0, 2, 3, 4, 5, 6, 100, -100, np.nan])
    found = _binned(numbers, np.arange(6), WORDS)
    assert found.attribute.cut_points == (2.0, 5.0)
    words = ["low", *["middle"] * 4, "high", "high", "low", None]
    assert found.column.to_pylist() == words
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


def _column(name, source, column=pa.nulls(0)):  # noqa: B008
    return AssignedColumn(
        attribute=Attribute(name=name, column=name, source=source, values=()), column=column
    )


def test_with_free_names__nothing_of_the_users_is_replaced():
    found = with_free_names(
        [
            _column("colour", "metadata", None),
            _column("colour", "built-in"),
            _column("colour", "proposed"),
            _column("age", "metadata"),
            _column("contrast", "property"),
            _column("place", "built-in"),
        ],
        ["colour", "age", "contrast"],
    )
    assert [each.attribute.column for each in found] == [
        "colour",
        "colour (assigned)",
        "colour (assigned 2)",
        "age (bins)",
        "contrast (measured)",
        "place",
    ]
    assert [each.attribute.name for each in found[:2]] == ["colour", "colour"]


N_ROWS = 60


def _columns(wanted=(), reference=None, **metadata):
    dataset = dataset_from_columns(class_names=["cat"], labels=[0] * N_ROWS, metadata=metadata)
    return list(
        user_columns(dataset, np.arange(N_ROWS) if reference is None else reference, wanted)
    )


def test_user_columns__words_and_few_numbers_pass_as_they_are():
    site = ["north", "south", None] * 20
    found = _columns(site=site, wet=[True, False] * 30, grade=[1, 2, 3] * 20)
    assert [(each.attribute.name, each.column) for each in found] == [
        ("site", None),
        ("wet", None),
        ("grade", None),
    ]
    shares = [(value.value, round(value.share, 3)) for value in found[0].attribute.values]
    assert shares == [("north", 0.333), ("south", 0.333)]
    assert round(found[0].attribute.missing_share, 3) == 0.333
    assert [value.value for value in found[1].attribute.values] == ["False", "True"]


def test_user_columns__many_numbers_become_bands_cut_on_reference_rows():
    (age,) = _columns(age=[float(number) for number in range(N_ROWS)], reference=np.arange(11))
    assert age.attribute.cut_points == (2.0, 8.0)
    assert [value.value for value in age.attribute.values] == [
        "age below 2",
        "age from 2 to 8",
        "age above 8",
    ]
    assert age.column.to_pylist()[:4] == [
        "age below 2",
        "age below 2",
        "age from 2 to 8",
        "age from 2 to 8",
    ]
    assert age.column.to_pylist()[-1] == "age above 8"


def test_user_columns__numbers_that_are_missing_or_not_finite():
    numbers = [float(number) for number in range(N_ROWS)]
    numbers[0], numbers[1], numbers[2] = float("nan"), float("inf"), None
    (found,) = _columns(depth=numbers)
    assert found.column.to_pylist()[:3] == [None, None, None]
    assert found.attribute.missing_share == 0.05


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ([f"id-{number}" for number in range(N_ROWS)], "it has another value for every sample"),
        (list(range(N_ROWS)), "it has another value for every sample"),
        (["same"] * N_ROWS, "it has the same value everywhere"),
        ([None] * (N_ROWS - 1) + ["once"], "it has the same value everywhere"),
        (pa.nulls(N_ROWS, pa.string()), "it is empty"),
        (
            [f"word {number % 55}" for number in range(N_ROWS)],
            "it has 55 different values, more than 50",
        ),
        ([0] * 40 + list(range(20)), None),
        (
            [datetime.date(2020, 1, 1)] * N_ROWS,
            "its values are neither words nor numbers but date32[day]",
        ),
        ([["a"]] * N_ROWS, "its values are neither words nor numbers but list<item: string>"),
    ],
)
def test_user_columns__left_out_with_a_reason(values, why):
    (found,) = _columns(column=values)
    assert (found.why if isinstance(found, LeftOut) else None) == why


def test_user_columns__only_those_that_are_wanted():
    found = _columns(wanted=["site"], site=["north", "south"] * 30, other=["a", "b"] * 30)
    assert [each.attribute.name for each in found] == ["site"]
    with pytest.raises(ConfigError, match=r"no such metadata columns.*\['sight'\].*site"):
        _columns(wanted=["sight"], site=["north", "south"] * 30)


def test_user_columns__dictionary_columns_are_words():
    coded = pa.DictionaryArray.from_arrays(
        pa.array([0, 1] * 30, pa.int8()), pa.array(["north", "south"])
    )
    (found,) = _columns(site=coded)
    assert [value.value for value in found.attribute.values] == ["north", "south"]
