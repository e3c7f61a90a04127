import json
import tarfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weakspot.core.errors import DataError, UnavailableError, WeakspotError
from weakspot.data.open_source import open_source
from weakspot.data.source import SampleSource


def write(path, text=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def message_of(path, **settings) -> str:
    with pytest.raises(WeakspotError) as caught:
        list(open_source(str(path), **settings).read())
    return str(caught.value)


def test_open_source__knows_every_kind(tmp_path):
    write(tmp_path / "folder/cat/1.jpg")
    write(tmp_path / "saved/state.json", json.dumps({"_data_files": []}))
    (tmp_path / "shards").mkdir()
    pq.write_table(pa.table({"path": ["1.jpg"], "label": ["a"]}), tmp_path / "shards/train.parquet")
    with tarfile.open(tmp_path / "train.tar", "w"):
        pass
    expected = {
        tmp_path / "folder": "image-folder",
        tmp_path / "saved": "hf-dataset",
        tmp_path / "shards": "hf-dataset",
        tmp_path / "shards/train.parquet": "manifest",
        tmp_path / "train.tar": "webdataset",
        tmp_path / "{train,test}.tar": "webdataset",
        write(tmp_path / "m.csv", "path,label\n1.jpg,a\n"): "manifest",
        write(tmp_path / "p.csv", "label,prediction\na,a\n"): "predictions",
    }
    for path, kind in expected.items():
        source = open_source(str(path))
        assert isinstance(source, SampleSource)
        assert (source.kind, source.location) == (kind, str(path))


def test_open_source__settings_reach_the_source(tmp_path):
    path = write(tmp_path / "m.csv", "file,what\n1.jpg,1\n")
    source = open_source(
        path, columns={"label": "what"}, default_split="dev", class_names=["cat", "dog"]
    )
    (sample,) = source.read()
    assert (sample.labels, sample.split) == (("dog",), "validation")


def test_open_source__a_given_kind_wins(tmp_path):
    path = write(tmp_path / "m.csv", "path,label,prediction\n1.jpg,a,b\n")
    assert open_source(path, kind="predictions").kind == "predictions"
    assert next(open_source(path, kind="predictions").read()).location is None


def test_open_source__nothing_there(tmp_path):
    write(tmp_path / "images/a/1.jpg")
    message = message_of(tmp_path / "image")
    assert "There is nothing at this path (did you mean 'images'?)" in message
    with pytest.raises(UnavailableError, match="kind = 'hf-dataset'"):
        open_source("someone/images")


def test_open_source__empty_and_useless_folders(tmp_path):
    (tmp_path / "empty").mkdir()
    write(tmp_path / "notes/a.docx")
    write(tmp_path / "tables/a.csv")
    assert "The folder is empty" in message_of(tmp_path / "empty")
    assert "nothing that weakspot reads" in message_of(tmp_path / "notes")
    assert "tables but no images" in message_of(tmp_path / "tables")


def test_open_source__refuses_to_choose_between_two_readings(tmp_path):
    write(tmp_path / "cat/1.jpg")
    write(tmp_path / "metadata.csv", "file_name,label\ncat/1.jpg,cat\n")
    message = message_of(tmp_path)
    assert "1 of images, 1 of tables" in message
    assert "metadata.csv" in message
    assert open_source(str(tmp_path), kind="image-folder").kind == "image-folder"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a.json", "did you mean '.jsonl'"),
        ("a.cvs", "did you mean '.csv'"),
        ("a.jpg", "This is one image"),
        ("a.zip", "none that weakspot reads"),
    ],
)
def test_open_source__files_of_other_kinds(tmp_path, name, said):
    write(tmp_path / name, "x")
    assert said in message_of(tmp_path / name)


def test_open_source__wrong_settings(tmp_path):
    path = write(tmp_path / "m.csv", "path,label\n1.jpg,a\n")
    with pytest.raises(DataError, match="did you mean 'manifest'"):
        open_source(path, kind="manifst")
    with pytest.raises(DataError, match="'greenish' is unknown"):
        open_source(path, default_split="greenish")
    with pytest.raises(DataError, match="a file, not a folder"):
        open_source(path, kind="image_folder")


def test_open_source__table_of_predictions_whose_images_are_not_there(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("path,label,prediction\na.jpg,x,y\nb.jpg,y,y\n", encoding="utf-8")
    source = open_source(str(table))
    assert source.kind == "predictions"
    assert "none of the first 2 is there" in source.note
    (tmp_path / "b.jpg").write_bytes(b"")
    assert open_source(str(table)).kind == "manifest"
    assert open_source(str(table), kind="manifest").kind == "manifest"
    table.write_text("path,label\nc.jpg,x\n", encoding="utf-8")
    assert open_source(str(table)).kind == "manifest"
    table.write_text("path,label,prediction\nhttps://example.org/a.jpg,x,y\n", encoding="utf-8")
    assert open_source(str(table)).kind == "manifest"


def test_open_source__a_role_given_for_images_that_are_not_there(tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("shot,label,prediction\na.jpg,x,y\n", encoding="utf-8")
    source = open_source(str(table), columns={"path": "shot"})
    assert source.kind == "predictions"
    assert [sample.location for sample in source.read()] == [None]
