import datetime
from decimal import Decimal

import pytest

from weakspot.data.rows import (
    CellError,
    image_cell,
    label_cell,
    metadata_kind,
    metadata_value,
    probability,
    probability_items,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (" cat ", ("cat",)),
        ("salt|pepper", ("salt|pepper",)),
        (3, ("3",)),
        (3.0, ("3",)),
        (True, ("true",)),
        (None, ()),
        (float("nan"), ()),
        ("  ", ()),
        (["a", "b", "a"], ("a", "b")),
    ],
)
def test_label_cell__one(value, expected):
    assert label_cell(value, many=False) == expected


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("7", "int"),
        ("-7", "int"),
        ("007", "str"),
        ("+7", "str"),
        ("1.50", "float"),
        (".5", "float"),
        ("1e-3", "float"),
        ("nan", "str"),
        ("1,5", "str"),
        ("12345678901234567890", "str"),
        ("True", "bool"),
        ("", None),
        ("2024-01-02", "str"),
    ],
)
def test_metadata_kind__of_text(text, kind):
    assert metadata_kind(text, is_text=True) == kind


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        ("7", "int", 7),
        (7, "float", 7.0),
        (Decimal("1.5"), "float", 1.5),
        ("TRUE", "bool", True),
        (True, "str", "true"),
        (datetime.date(2024, 1, 2), "str", "2024-01-02"),
        ({"b": 1, "a": [2]}, "str", '{"a": [2], "b": 1}'),
        (float("nan"), "float", None),
        ("", "str", None),
        ("x", None, None),
    ],
)
def test_metadata_value__cases(value, kind, expected):
    assert metadata_value(value, kind) == expected


@pytest.mark.parametrize(
    ("value", "is_bytes", "said"),
    [("?!", True, "base64"), (3, False, "given as int"), ("", False, "empty")],
)
def test_image_cell__refused(value, is_bytes, said):
    with pytest.raises(CellError, match=said):
        image_cell(value, is_bytes=is_bytes)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("x", "not a number"),
        (-0.1, "negative"),
        (1.1, "above 1"),
        (float("inf"), "not finite"),
        (None, "missing"),
    ],
)
def test_probability__refused(value, said):
    with pytest.raises(CellError, match=said):
        probability(value)


def test_probability_items__forms():
    assert probability_items('{"a": 1}') == {"a": 1.0}
    assert probability_items([("a", 1), ("b", 0)]) == {"a": 1.0, "b": 0.0}
    assert probability_items([0.5, 0.5]) == [0.5, 0.5]
    assert probability_items({}) is None
    with pytest.raises(CellError, match="given as int"):
        probability_items(1)
