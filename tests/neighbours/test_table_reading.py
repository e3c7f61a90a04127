import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as pa_feather
import pyarrow.orc as pa_orc
import pyarrow.parquet as pq
import pytest

from weakspot.core.errors import DataError
from weakspot.neighbours.table_reading import only_known, read_table_file

TABLE = pa.table({"path": ["a.png", None], "size": [1, 2]})


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("t.parquet", pq.write_table),
        ("t.feather", pa_feather.write_feather),
        ("t.orc", pa_orc.write_table),
        ("t.csv", pa_csv.write_csv),
    ],
)
def test_every_kind_of_table_is_read(tmp_path, name, write):
    write(TABLE, str(tmp_path / name))
    assert read_table_file(tmp_path / name).to_pydict() == TABLE.to_pydict()


def test_text_tables_are_read(tmp_path):
    (tmp_path / "t.tsv").write_text("path\tsize\na.png\t1\n\t2\n")
    (tmp_path / "t.jsonl").write_text('{"path": "a.png", "size": 1}\n{"size": 2}\n')
    assert read_table_file(tmp_path / "t.tsv").to_pydict() == TABLE.to_pydict()
    assert read_table_file(tmp_path / "t.jsonl").to_pydict() == TABLE.to_pydict()


def test_what_is_no_table_is_refused(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"")
    with pytest.raises(DataError, match="cannot be read"):
        read_table_file(tmp_path / "t.csv")
    with pytest.raises(DataError, match="no table"):
        read_table_file(tmp_path / "t.xlsx")


def test_columns_in_which_nothing_is_known_are_left_out():
    assert only_known(TABLE.append_column("empty", pa.nulls(2))).column_names == ["path", "size"]
