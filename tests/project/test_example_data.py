from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weakspot.core.errors import DataError
from weakspot.project.demo import GroceryPhotograph, groceries, read_groceries


def test_read_groceries__every_image_once(tmp_path):
    columns = {
        "dataset": ["train", "val", "test", "test"],
        "coarse_cat": ["Apple", "Apple", "Pear", "Pear"],
        "finegrained_cat": ["Pink-Lady", "Royal-Gala", "Anjou", "Anjou"],
        "image_data": [b"one", b"two", b"three", b"three"],
    }
    pq.write_table(pa.table(columns), tmp_path / "g.parquet")
    assert read_groceries(tmp_path / "g.parquet") == [
        GroceryPhotograph(data=b"one", coarse="Apple", fine="Pink-Lady", split="train"),
        GroceryPhotograph(data=b"two", coarse="Apple", fine="Royal-Gala", split="validation"),
        GroceryPhotograph(data=b"three", coarse="Pear", fine="Anjou", split="test"),
    ]


def test_read_groceries__damaged(tmp_path):
    (tmp_path / "g.parquet").write_bytes(b"nothing")
    with pytest.raises(DataError, match="cannot be read"):
        read_groceries(tmp_path / "g.parquet")


@pytest.mark.network
def test_groceries__counts():
    found = groceries()
    assert len(found) == 1393
    assert Counter(photograph.split for photograph in found) == {
        "train": 675,
        "test": 661,
        "validation": 57,
    }
    assert Counter(photograph.coarse for photograph in found) == {
        "Apple": 576,
        "Melon": 327,
        "Pear": 229,
        "Satsumas": 143,
        "Orange": 118,
    }
    assert len({photograph.fine for photograph in found}) == 14
    assert all(photograph.data.startswith(b"\xff\xd8") for photograph in found)
