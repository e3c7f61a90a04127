import json

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from tests.tools.made_bundle import TAG, made_bundle
from tests.tools.real_libraries import run_real

from weakspot.core.errors import ConfigError, DataError
from weakspot.core.samples import SampleSet
from weakspot.data.open_source import open_source
from weakspot.tools.spotlight import read_table, write_table

OPEN = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from open_in_spotlight import load
from renumics.spotlight.data_source import create_datasource
from renumics.spotlight.data_store import DataStore
from renumics.spotlight.dtypes import create_dtype
from renumics.spotlight.viewer import Viewer

table, dtype, issues = load()
store = DataStore(create_datasource(table), {name: create_dtype(kind) for name, kind in dtype.items()})
image = store.get_converted_value("image", 0)
embedding = store.get_converted_value("embedding", 0)
print("TOLD" + json.dumps({
    "n": len(store), "types": {name: str(kind) for name, kind in store.dtypes.items()}, "png": bytes(image[:4]).hex(),
    "issues": [[one.title, one.rows, one.severity, one.columns, one.description] for one in issues], "dim": len(embedding),
}))
"""


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spotlight")
    return write_table(made_bundle(folder / "images"), folder / "out")


@pytest.fixture(scope="module")
def told(exported, tmp_path_factory):
    answer = run_real(OPEN, exported.files[0].parent, home=tmp_path_factory.mktemp("home"))
    return json.loads(answer.split("TOLD")[1])


def test_spotlight_opens_the_table_and_knows_its_columns(told):
    assert told["n"] == 8
    assert told["dim"] == 5
    assert told["png"] == b"\x89PNG".hex()
    kinds = told["types"]
    assert kinds["image"] == "Image"
    assert kinds["embedding"].startswith("Embedding")
    assert kinds["label"].startswith("Category")
    assert [kinds[name] for name in ("failed", TAG, "confidence", "colour")] == [
        "bool",
        "bool",
        "float",
        "str",
    ]


def test_every_slice_is_an_issue_of_spotlight(told):
    [[title, rows, severity, columns, description]] = told["issues"]
    assert (title, rows, severity) == ("disc: green", [1, 3, 5], "high")
    assert columns == ["image", "label", "prediction", TAG]
    assert "9 of 10" in description


def test_what_is_not_known_is_null(exported):
    table = pq.read_table(exported.files[0])
    assert table.column("failed").to_pylist() == [False, True, False, True, False, True, None, None]
    assert table.column("label").to_pylist()[-1] is None


def test_a_table_that_was_kept_becomes_a_manifest(exported, tmp_path):
    written = read_table(exported.files[0], tmp_path / "manifest.parquet")
    assert "embedding" in written.sentence
    samples = list(open_source(str(written.files[0])).read())
    assert [sample.labels for sample in samples[:3]] == [("disc",), ("disc",), ("square",)]
    assert samples[1].metadata[TAG] is True
    assert samples[0].split == "train"
    assert samples[1].predictions == ("square",)


def test_relative_paths_of_a_csv_start_at_its_folder(tmp_path):
    (tmp_path / "kept").mkdir()
    pa_csv.write_csv(
        pa.table({"filename": ["a.png", "https://example.org/b.png"], "label": ["x", "y"]}),
        tmp_path / "kept" / "t.csv",
    )
    written = read_table(tmp_path / "kept" / "t.csv", tmp_path / "manifest.csv")
    assert pa_csv.read_csv(written.files[0]).column("path").to_pylist() == [
        str(tmp_path / "kept" / "a.png"),
        "https://example.org/b.png",
    ]


def test_tables_without_images_and_unknown_files_are_refused(tmp_path):
    pq.write_table(pa.table({"colour": ["red"]}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="No column holds images"):
        read_table(tmp_path / "t.parquet", tmp_path / "m.csv")
    (tmp_path / "t.h5").write_bytes(b"no")
    with pytest.raises(DataError, match="no table"):
        read_table(tmp_path / "t.h5", tmp_path / "m.csv")
    (tmp_path / "broken.parquet").write_bytes(b"no")
    with pytest.raises(DataError, match="cannot be read"):
        read_table(tmp_path / "broken.parquet", tmp_path / "m.csv")
    with pytest.raises(ConfigError, match="extension"):
        read_table(tmp_path / "t.parquet", tmp_path / "m.xlsx")


def test_samples_without_embeddings_are_exported_too(tmp_path):
    bundle = made_bundle(tmp_path / "images")
    bare = SampleSet(dataset=bundle.samples.dataset, rows=bundle.samples.rows)
    written = write_table(made_bundle(tmp_path / "images", samples=bare), tmp_path / "out")
    assert "embedding" not in pq.read_schema(written.files[0]).names
