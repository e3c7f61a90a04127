import pytest
from hypothesis import given
from hypothesis import strategies as st

from weakspot.core.errors import DataError
from weakspot.repair.labels import read_table, table_bytes
from weakspot.store.csv_tables import plain_cell, safe_cell

CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)


@given(st.lists(st.tuples(CELLS, CELLS), max_size=4))
def test_table_bytes__comes_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("tables") / "list.csv"
    lines = [
        {"sample_id": f"s{number}", "image": one, "label": two}
        for number, (one, two) in enumerate(rows)
    ]
    path.write_bytes(table_bytes(("sample_id", "image", "label"), lines))
    found = [(line.cells["image"], line.label) for line in read_table(path)[1]]
    # Blanks around a cell are not meant.
    assert found == [
        (plain_cell(safe_cell(one).strip()), plain_cell(safe_cell(two).strip()))
        for one, two in rows
    ]


@pytest.mark.parametrize(
    "text",
    [
        "sample_id,label\na,cat\n",
        "\ufeffsample_id;label\r\na;cat\r\n",
        "Sample ID\tNote\tLABELS\na\tnice, indeed; so\tcat",
        '"sample_id"|"label"\n"a"|"cat"\n',
        "\n\nlabel , sample_id\n\n cat , a \n,\n",
        "sample_id,label\na,cat,,\n",
    ],
)
def test_read_table__delimiters_marks_and_blank_lines(text, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_bytes(text.encode())
    (line,) = read_table(path)[1]
    assert (line.cells["sample_id"], line.label, line.fault) == ("a", "cat", "")


def test_read_table__a_known_name_is_preferred_to_another_that_would_do(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("path,image,label\nelsewhere,a.png,cat\n")
    assert read_table(path)[1][0].cells == {
        "path": "elsewhere",
        "image": "a.png",
        "label": "cat",
    }


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "needs the column label"),
        (b"sample_id,class\na,cat\n", r"needs the column label.*'class'"),
        (b"name,label\na,cat\n", "one of sample_id and image"),
        (b"sample_id,label,label\na,cat,dog\n", "occurs twice"),
        ("sample_id,label\na,caf\xe9\n".encode("latin-1"), "not UTF-8"),
        ("sample_id,label\na,cat\n".encode("utf-16"), "not UTF-8"),
        (b'sample_id,label\na,"' + b"x" * 200_000 + b'"\n', r"field larger than field limit.*line"),
    ],
)
def test_read_table__refuses_what_is_no_table_of_labels(content, match, tmp_path):
    path = tmp_path / "labels.csv"
    path.write_bytes(content)
    with pytest.raises(DataError, match=match):
        read_table(path)


def test_read_table__refuses_what_is_no_file(tmp_path):
    with pytest.raises(DataError, match="No such file"):
        read_table(tmp_path / "nothing.csv")
    with pytest.raises(DataError, match="Is a directory"):
        read_table(tmp_path)
