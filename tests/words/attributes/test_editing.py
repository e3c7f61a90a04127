import pyarrow as pa
import pytest

from weakspot.core.errors import DataError
from weakspot.core.samples import Attribute, AttributeBook, AttributeValue
from weakspot.words.editing import (
    AttributeEdit,
    EditLog,
    GivenValue,
    LoggedEdit,
    checked_edit,
    edited_book,
)


def _worded(name, *values):
    told = tuple(
        AttributeValue(value=value, phrases=(f"a photo, {value}", f"an image, {value}"))
        for value in values
    )
    return Attribute(name=name, column=name, source="built-in", values=told)


BOOK = AttributeBook(
    attributes=(
        _worded("colour", "red", "green", "blue"),
        _worded("place", "sand", "grass", "snow"),
    )
)


def _log(*edits):
    entries = [
        LoggedEdit(number=place, edit=edit, by="Ann", time="")
        for place, edit in enumerate(edits, start=1)
    ]
    return EditLog(entries=tuple(entries))


def _edit(kind, attribute="colour", **fields):
    return AttributeEdit(kind=kind, attribute=attribute, **fields)


MERGE = _edit("merge values", values=("red", "blue"), title="ripe")


def _only(log, name="colour"):
    return next(one for one in edited_book(BOOK, log)[0] if one.attribute_id == name)


def test_edited_book__rename__keeps_the_column():
    found = _only(
        _log(
            _edit("rename attribute", title="paint"),
            _edit("rename value", values=("red",), title="scarlet"),
        )
    )
    assert (found.name, found.column, found.is_first) == ("paint", "colour", True)
    assert found.record(None).values[0].shown == "scarlet"


def test_edited_book__merge__a_column_of_its_own_that_holds_both():
    found = _only(_log(MERGE))
    assert not found.is_told_anew
    assert found.column not in ("colour", "place")
    assert found.grouped(pa.array(["red", "blue", "green", None])).to_pylist() == [
        "red",
        "red",
        "green",
        None,
    ]


def test_edited_book__same_edits__same_column_whatever_it_is_called():
    renamed = _only(
        _log(
            MERGE,
            _edit("rename attribute", title="paint"),
            _edit("rename value", values=("red",), title="dark"),
        )
    )
    assert renamed.column == _only(_log(MERGE)).column


def test_edited_book__undone__the_first_column_again():
    assert _only(_log(MERGE, AttributeEdit(kind="undo", target=1))).column == "colour"


def test_edited_book__deleted_word__is_told_anew_and_merging_does_not_change_what_is_told():
    edits = (
        _edit("delete value", values=("green",)),
        _edit("add value", given=(GivenValue(title="pink", phrases=("a", "b")),)),
        _edit("merge values", values=("red", "pink"), title="warm"),
    )
    deleted, more, merged = (_log(*edits[:n_edits]) for n_edits in (1, 2, 3))
    assert _only(deleted).is_told_anew
    assert {one.value for one in _only(merged).to_tell().values} == {"red", "blue", "pink"}
    assert _only(more).column != _only(merged).column


def test_edited_book__moved_value__is_told_apart_in_the_other_attribute():
    log = _log(_edit("move value", values=("green",), to="place"))
    assert [value.title for value in _only(log, "place").values] == [
        "sand",
        "grass",
        "snow",
        "green",
    ]
    assert [value.title for value in _only(log).values] == ["red", "blue"]


def test_edited_book__edit_that_does_not_fit__is_left_out_with_a_note():
    log = _log(_edit("delete attribute", attribute="weather"), MERGE)
    (colour, _), left_out = edited_book(BOOK, log)
    assert left_out.keys() == {1}
    assert "edit 1" in left_out[1]
    assert any(value.title == "ripe" for value in colour.values)


def test_checked_edit__nothing_left_to_tell_apart__refused():
    with pytest.raises(DataError, match="2 to 50 values"):
        checked_edit(BOOK, _log(), _edit("delete value", values=("red", "green")))


def test_checked_edit__name_of_a_value_that_was_merged_away__refused():
    with pytest.raises(DataError, match="once called so"):
        checked_edit(
            BOOK,
            _log(MERGE),
            _edit("add value", given=(GivenValue(title="Blue", phrases=("a", "b")),)),
        )
