import csv
import io

import numpy as np
import pytest

from weakspot.core.errors import DataError
from weakspot.data import tables
from weakspot.data.source import Problems
from weakspot.data.tables import TableFile


@pytest.fixture
def read(tmp_path):
    def rows_of(text: str, *, without=frozenset(), problems=None):
        (tmp_path / "table.csv").write_bytes(text.encode())
        table = TableFile(location=str(tmp_path / "table.csv"))
        batches = table.batches(Problems() if problems is None else problems, without=without)
        return [list(row.values()) for batch in batches for row in batch.columns.to_pylist()]

    return rows_of


def python_reads(text: str, n_fields: int = 2):
    rows = [fields for fields in csv.reader(io.StringIO(text, newline="")) if fields][1:]
    return [fields for fields in rows if len(fields) == n_fields]


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n3,4",
        "a,b\r\n1,2\r\n\r\n3,4\r\n",
        "\n\na,b\n1,\n,4\n\n",
        'a,b\n"1","2"\n"x,y","line\nbreak"\n',
        'a,b\n"he said ""no""",""\n"""",x\n',
        'a,"b, or c"\n"two\r\nlines"," 7 "\nNA,null\n',
        "a,b\nnaïve,日本\n",
        'a,b\n1,x"y\n"1"x,2\n "1",2\n',
        'a,b\n1,"open\n',
        "a,b\n1,2\r3,4\n",
        "a,b\n1,2\0\n",
        "a,b\n1," + "x" * 100_000 + "\n",
    ],
)
def test_batches__as_python_reads(read, text):
    assert read(text) == python_reads(text)


def test_batches__random_text_as_python_reads(read):
    random = np.random.default_rng(5)
    pieces = ["a", "ß", "1", ",", ",", "\n", "\n", "\r\n", '"', '""', '","', '"\n"', " ", ""]
    for _ in range(500):
        text = "a,b\n" + "".join(random.choice(pieces, size=random.integers(0, 25)))
        assert read(text) == python_reads(text), repr(text)


def test_batches__only_wanted_columns(read):
    assert read("\ufeffa,b,c\n1,2,3\n4,5,6\n", without=frozenset({"a", "b"})) == [["3"], ["6"]]


def test_batches__rows_of_other_lengths_are_told_whatever_the_blocks(read, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK_BYTES", 64)
    problems = Problems()
    text = "a,b\n" + "1,2\n" * 100 + "3\n" + "1,2\n" * 50 + "4,5,6\n"
    assert read(text, problems=problems) == [["1", "2"]] * 150
    with pytest.raises(DataError) as told:
        problems.raise_if_any(what="", where="")
    assert "A row has 1 fields where the header has 2. (row 101)" in str(told.value)
    assert "A row has 3 fields where the header has 2. (row 152)" in str(told.value)


def test_batches__a_row_that_never_ends(read, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK_BYTES", 64)
    with pytest.raises(DataError, match="a row is longer than 64 bytes") as told:
        read('a,b\n1,"open' + "x\n" * 100)
    assert "Correct the quotes" in str(told.value)
