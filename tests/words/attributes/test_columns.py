import pyarrow as pa

from weakspot.core.samples import Attribute
from weakspot.words.attribute_columns import AssignedColumn, LeftOut, with_free_names


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


def test_left_out__sentence():
    said = "The attribute 'site' is left out: it is empty."
    assert LeftOut(name="site", why="it is empty").sentence == said
