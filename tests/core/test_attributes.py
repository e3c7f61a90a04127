import pyarrow as pa

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.samples import (
    mark_attributes,
    marked_attributes,
)


def test_marked_attributes__none_before_and_kept_by_later_changes_of_the_table():
    dataset = dataset_from_columns(
        class_names=["cat"], labels=[0, 0], metadata={"site": ["north", "south"]}
    )
    assert marked_attributes(dataset.table) is None
    table = mark_attributes(dataset.table, ["site"])
    assert marked_attributes(table) == ("site",)
    assert marked_attributes(table.append_column("meta.more", pa.array([1, 2]))) == ("site",)
    assert marked_attributes(mark_attributes(table, [])) == ()
