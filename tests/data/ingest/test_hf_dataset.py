import json
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weakspot.core.dataset import Split
from weakspot.core.errors import DataError, MissingExtraError
from weakspot.data.hf_dataset import HfDatasetSource

IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
FEATURES = {
    "image": {"_type": "Image"},
    "label": {"names": ["cat", "dog"], "_type": "ClassLabel"},
    "age": {"dtype": "int64", "_type": "Value"},
}


def table_of(labels, first=0):
    rows = range(first, first + len(labels))
    schema = pa.schema(
        [("image", IMAGE), ("label", pa.int64()), ("age", pa.int64())],
        metadata={"huggingface": json.dumps({"info": {"features": FEATURES}})},
    )
    images = [{"bytes": f"image {row}".encode(), "path": None} for row in rows]
    return pa.table({"image": images, "label": labels, "age": list(rows)}, schema=schema)


def save(folder, table, split=None):
    """Write a folder as `Dataset.save_to_disk` does: Arrow stream, state and information."""
    folder.mkdir(parents=True)
    name = "data-00000-of-00001.arrow"
    with (
        pa.OSFile(str(folder / name), "wb") as file,
        pa.ipc.new_stream(file, table.schema) as writer,
    ):
        for batch in table.to_batches(max_chunksize=2):
            writer.write_batch(batch)
    (folder / "state.json").write_text(
        json.dumps({"_data_files": [{"filename": name}], "_split": split})
    )
    (folder / "dataset_info.json").write_text(json.dumps({"features": FEATURES}))


def facts(source, start=0):
    return [
        (sample.data, sample.labels, sample.split, dict(sample.metadata))
        for sample in source.read(start)
    ]


def test_read__saved_dictionary_of_splits(tmp_path):
    save(tmp_path / "train", table_of([0, 1, -1]))
    save(tmp_path / "val", table_of([1], first=3))
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "val"]}')
    source = HfDatasetSource(location=str(tmp_path))
    assert facts(source) == [
        (b"image 0", ("cat",), "train", {"age": 0}),
        (b"image 1", ("dog",), "train", {"age": 1}),
        (b"image 2", (), "train", {"age": 2}),
        (b"image 3", ("dog",), "validation", {"age": 3}),
    ]
    assert source.count() == 4
    for start in range(5):
        assert facts(source, start) == facts(source)[start:]
    keys = [sample.key for sample in source.read()]
    assert keys[0] == "train/data-00000-of-00001.arrow row 1"
    assert len(set(keys)) == 4


def test_read__one_saved_set_with_a_split_name_that_is_none_of_ours(tmp_path):
    save(tmp_path / "set", table_of([0]), split="train[:10%]")
    assert (
        facts(HfDatasetSource(location=str(tmp_path / "set"), default_split=Split.TEST))[0][2]
        == "test"
    )


def test_read__parquet_shards(tmp_path):
    (tmp_path / "data").mkdir()
    pq.write_table(
        table_of([0, 1, 1]), tmp_path / "data/train-00000-of-00002.parquet", row_group_size=2
    )
    pq.write_table(table_of([1], first=3), tmp_path / "data/train-00001-of-00002.parquet")
    pq.write_table(table_of([0], first=4), tmp_path / "data/test-00000-of-00001.parquet")
    source = HfDatasetSource(location=str(tmp_path))
    assert [(data, split) for data, _, split, _ in facts(source)] == [
        (b"image 4", "test"),
        (b"image 0", "train"),
        (b"image 1", "train"),
        (b"image 2", "train"),
        (b"image 3", "train"),
    ]
    for start in range(6):
        assert facts(source, start) == facts(source)[start:]


def test_read__images_that_are_paths_or_nothing(tmp_path):
    images = [{"bytes": None, "path": "a.jpg"}, {"bytes": None, "path": None}]
    pq.write_table(
        pa.table({"image": pa.array(images, IMAGE), "label": ["x", "y"]}),
        tmp_path / "train.parquet",
    )
    samples = list(HfDatasetSource(location=str(tmp_path)).read())
    assert [(sample.location, sample.data) for sample in samples] == [
        (str(tmp_path / "a.jpg"), None),
        (None, b""),
    ]


def test_read__shards_with_other_columns(tmp_path):
    pq.write_table(pa.table({"path": ["1"], "label": ["a"]}), tmp_path / "train-0.parquet")
    pq.write_table(pa.table({"path": ["1"], "lable": ["a"]}), tmp_path / "train-1.parquet")
    with pytest.raises(DataError, match="other columns than the first one: \\['label', 'lable'\\]"):
        list(HfDatasetSource(location=str(tmp_path)).read())


def test_read__unknown_splits_are_all_named(tmp_path):
    for name in ("alpha", "beta"):
        save(tmp_path / name, table_of([0]))
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["alpha", "beta"]}')
    with pytest.raises(DataError, match="(?s)'alpha' is unknown.*'beta' is unknown"):
        list(HfDatasetSource(location=str(tmp_path)).read())


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("no json", "not JSON"),
        ("[]", "no JSON object"),
        ("{}", "lists no files"),
        ('{"_indices_data_files": [1]}', "selection"),
    ],
)
def test_read__damaged_state(tmp_path, state, said):
    (tmp_path / "state.json").write_text(state)
    with pytest.raises(DataError, match=said):
        list(HfDatasetSource(location=str(tmp_path)).read())


def test_read__truncated_arrow_file(tmp_path):
    save(tmp_path / "set", table_of([0, 1, 0, 1]))
    path = tmp_path / "set/data-00000-of-00001.arrow"
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(DataError, match="cannot be read"):
        list(HfDatasetSource(location=str(tmp_path / "set")).read())


def test_read__name_on_the_hub_without_the_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"weakspot\[hub\]"):
        list(HfDatasetSource(location="someone/images").read())


def test_fingerprint__notices_a_changed_shard(tmp_path):
    pq.write_table(table_of([0]), tmp_path / "train.parquet")
    first = HfDatasetSource(location=str(tmp_path)).fingerprint()
    assert HfDatasetSource(location=str(tmp_path)).fingerprint() == first
    pq.write_table(table_of([0, 1]), tmp_path / "train.parquet")
    assert HfDatasetSource(location=str(tmp_path)).fingerprint() != first
