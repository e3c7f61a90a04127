import pyarrow as pa
import pytest

from weakspot.core.samples import Attribute, AttributeBook, AttributeValue
from weakspot.store.columns import BOOK_FILE, COLUMNS_FILE, LATEST_FILE, ColumnCache

VALUE = AttributeValue(value="red", share=0.5)
BOOK = AttributeBook(
    attributes=(Attribute(name="colour", column="colour", source="built-in", values=(VALUE,)),),
    notes=("A note.",),
)
COLUMNS = pa.table({"meta.colour": ["red", None, "blue"]})


@pytest.fixture
def shelf(tmp_path):
    found = ColumnCache(data=tmp_path)
    found.save("tables1-a", BOOK, COLUMNS, group="tables1")
    return found


def test_load__what_was_saved(shelf):
    found = shelf.load("tables1-a", n_rows=3)
    assert found.book == BOOK
    assert found.columns.equals(COLUMNS)
    assert AttributeBook.model_validate_json((shelf.data / LATEST_FILE).read_bytes()) == BOOK


def test_load__nothing_under_another_key_or_for_other_samples(shelf):
    assert shelf.load("tables1-b", n_rows=3) is None
    assert shelf.load("tables1-a", n_rows=4) is None


@pytest.mark.parametrize("name", [BOOK_FILE, COLUMNS_FILE])
@pytest.mark.parametrize("content", [b"", b"{}x", None])
def test_load__damaged_is_as_good_as_nothing(shelf, name, content):
    path = shelf.data / "attributes" / "tables1-a" / name
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2] if content is None else content)
    assert shelf.load("tables1-a", n_rows=3) is None


def test_load__a_book_of_another_layout_is_made_anew(shelf):
    shelf.save("tables1-a", BOOK.model_copy(update={"book_version": 99}), COLUMNS, group="tables1")
    assert shelf.load("tables1-a", n_rows=3) is None


def test_save__replaces_and_forgets_samples_that_are_gone(shelf):
    shelf.save("tables1-b", BOOK, COLUMNS, group="tables1")
    assert shelf.load("tables1-a", n_rows=3) is not None
    shelf.save("tables2-a", BOOK, COLUMNS, group="tables2")
    assert shelf.load("tables1-a", n_rows=3) is None
    assert shelf.load("tables2-a", n_rows=3) is not None
    assert sorted(path.name for path in (shelf.data / "attributes").iterdir()) == ["tables2-a"]
