import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as pa_feather
import pyarrow.orc as pa_orc
import pyarrow.parquet as pq
import pytest
from tests.tools.made_bundle import TAG, made_bundle

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import DataError
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.tools.tables import embedding_column, only_known, read_table_file, sample_table


def test_columns_stand_in_a_fixed_order_and_own_ones_come_last(tmp_path):
    table = sample_table(made_bundle(tmp_path / "images"), tmp_path)
    predictions = [
        "sample_id",
        "image",
        "split",
        "label",
        "prediction",
        "confidence",
        "failed",
        TAG,
    ]
    assert table.column_names == [*predictions, "colour", "size", "box share", "tags"]
    assert table.column(TAG).to_pylist() == [False, True, False, True, False, True, False, False]


def test_an_own_column_never_hides_one_of_ours(tmp_path):
    dataset = dataset_from_columns(
        class_names=["a"], labels=[0], metadata={"label": ["mine"], "embedding": ["mine"]}
    )
    nobody = np.zeros(1, dtype=np.bool_)
    samples = SampleSet(dataset=dataset, rows=np.arange(1))
    table = sample_table(
        made_bundle(tmp_path, samples=samples, slices=(), has_failed=nobody, is_judged=nobody),
        tmp_path,
    )
    assert table.column("label").to_pylist() == ["a"]
    assert table.column("meta.label").to_pylist() == ["mine"]
    assert "meta.embedding" in table.column_names
    assert "failed" not in table.column_names


def test_a_sample_without_a_embedding_has_none(tmp_path):
    bundle = made_bundle(tmp_path)
    embeddings = np.array(bundle.embeddings())
    embeddings[2] = np.nan
    spaces = {"clip": EmbeddingSpace(encoder_id="made", embeddings=embeddings)}
    samples = SampleSet(dataset=bundle.samples.dataset, rows=bundle.samples.rows, spaces=spaces)
    column = embedding_column(made_bundle(tmp_path, samples=samples)).to_pylist()
    assert column[2] is None
    assert column[3] == embeddings[3].tolist()


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
