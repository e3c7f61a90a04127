import csv
import io

import numpy as np
import pytest

from weakspot.data import tables as csv_blocks
from weakspot.data.tables import IrregularTextError, read_csv_blocks


def blocks_of(text: str | bytes, *, delimiter: str = ",", wanted=None):
    data = text if isinstance(text, bytes) else text.encode()
    lines = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), delimiter=delimiter)
    names = next(filter(None, lines))
    tables = read_csv_blocks(
        io.BytesIO(data), names, delimiter=delimiter, wanted=names if wanted is None else wanted
    )
    return [list(row.values()) for table in tables for row in table.to_pylist()]


def rows_of(text: str, *, delimiter: str = ","):
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    return [fields for fields in reader if fields][1:]


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n3,4\n",
        "a,b\n1,2\n3,4",
        "a,b\r\n1,2\r\n\r\n3,4\r\n",
        "\n\na,b\n1,\n,4\n\n",
        'a,b\n"1","2"\n"x,y","line\nbreak"\n',
        'a,b\n"he said ""no""",""\n"""",x\n',
        'a,"b, or c"\n"two\r\nlines"," 7 "\nNA,null\n',
        "a,b\nnaïve,日本\n",
    ],
)
def test_read_csv_blocks__as_python_reads(text):
    assert blocks_of(text) == rows_of(text)


def test_read_csv_blocks__a_mark_at_the_beginning_is_no_part_of_the_first_name():
    assert blocks_of("\ufeffa;b\n1;2\n", delimiter=";") == [["1", "2"]]


def test_read_csv_blocks__only_wanted_columns():
    assert blocks_of("a,b,c\n1,2,3\n4,5,6\n", wanted=["c"]) == [["3"], ["6"]]


@pytest.mark.parametrize(
    "text",
    [
        'a,b\n1,x"y\n',
        'a,b\n"1"x,2\n',
        'a,b\n "1",2\n',
        'a,b\n1,"open\n',
        "a,b\n1,2,3\n",
        "a,b\n1\n",
        "a,b\n1,2\r3,4\n",
        "a,b\n1,2\0\n",
        "a,b\n1," + "x" * 140_000 + "\n",
        b"a,b\n1,\xff\n",
    ],
)
def test_read_csv_blocks__leaves_what_may_be_read_differently(text):
    data = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(IrregularTextError):
        list(read_csv_blocks(io.BytesIO(data), ["a", "b"], delimiter=",", wanted=["a", "b"]))


def test_read_csv_blocks__another_header_than_was_told_is_irregular():
    with pytest.raises(IrregularTextError):
        list(read_csv_blocks(io.BytesIO(b"a,c\n1,2\n"), ["a", "b"], delimiter=",", wanted=["a"]))


def test_read_csv_blocks__random_text_is_read_alike_or_left(monkeypatch):
    monkeypatch.setattr(csv_blocks, "BLOCK_BYTES", 64)
    random = np.random.default_rng(5)
    pieces = ["a", "ß", "1", ",", ",", "\n", "\n", "\r\n", '"', '""', '","', '"\n"', " ", ""]
    n_read = 0
    for _ in range(3000):
        text = "a,b\n" + "".join(random.choice(pieces, size=random.integers(0, 25)))
        try:
            found = blocks_of(text)
        except IrregularTextError:
            continue
        n_read += 1
        assert found == rows_of(text), repr(text)
    assert n_read > 100
