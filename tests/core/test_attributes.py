import pyarrow as pa
import pytest
from pydantic import ValidationError

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.samples import (
    Attribute,
    AttributeBook,
    AttributeValue,
    mark_attributes,
    marked_attributes,
)


def test_attribute_book__is_the_same_after_a_round_trip_and_names_its_columns():
    value = AttributeValue(
        value="green", phrases=("a photo of a green thing",), merged=("verdant",), share=0.25
    )
    colour = Attribute(
        name="colour",
        column="colour (assigned)",
        source="built-in",
        values=(value,),
        unsure_share=0.5,
    )
    book = AttributeBook(encoder_id="planted-1", attributes=(colour,), notes=("Nothing else.",))
    assert AttributeBook.model_validate_json(book.model_dump_json()) == book
    assert book.columns == ("colour (assigned)",)


def test_attribute__refuses_unknown_sources():
    with pytest.raises(ValidationError, match="source"):
        Attribute(name="colour", column="colour", source="guessed", values=())


def test_marked_attributes__none_before_and_kept_by_later_changes_of_the_table():
    dataset = dataset_from_columns(
        class_names=["cat"], labels=[0, 0], metadata={"site": ["north", "south"]}
    )
    assert marked_attributes(dataset.table) is None
    table = mark_attributes(dataset.table, ["site"])
    assert marked_attributes(table) == ("site",)
    assert marked_attributes(table.append_column("meta.more", pa.array([1, 2]))) == ("site",)
    assert marked_attributes(mark_attributes(table, [])) == ()
