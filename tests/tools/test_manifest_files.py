import pytest

from weakspot.core.errors import ConfigError
from weakspot.data.open_source import open_source
from weakspot.tools.tables import EXTENSIONS, labels_written, write_manifest

COLUMNS = {
    "sample_id": ["a", "b"],
    "path": ["/x/a.png", "/x/b, c.png"],
    "labels": [["disc", "square"], ["disc"]],
    "colour": ["=red", None],
    "number": [1, 2.5],
    "flag": [True, False],
    "empty": [None, None],
}


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_write_manifest__ingest_reads_it(tmp_path, extension):
    path = write_manifest(tmp_path / f"new/manifest{extension}", COLUMNS)
    first, second = open_source(str(path)).read()
    assert (first.key, second.key) == ("a", "b")
    assert (first.location, second.location) == ("/x/a.png", "/x/b, c.png")
    assert (first.labels, second.labels) == (("disc", "square"), ("disc",))
    assert first.metadata == {"colour": "=red", "number": 1, "flag": True}
    assert second.metadata == {"colour": None, "number": 2.5, "flag": False}


def test_write_manifest__values_of_different_kinds_become_text(tmp_path):
    path = write_manifest(tmp_path / "manifest.parquet", {"path": ["a", "b"], "mixed": [1, "x"]})
    assert [sample.metadata["mixed"] for sample in open_source(str(path)).read()] == ["1", "x"]


def test_write_manifest__nothing_is_left_of_a_failed_one(tmp_path):
    with pytest.raises(ValueError, match="zip"):
        write_manifest(tmp_path / "manifest.csv", {"path": ["a"], "label": ["b", "c"]})
    assert list(tmp_path.iterdir()) == []


def test_write_manifest__refuses(tmp_path):
    with pytest.raises(ConfigError, match="extension"):
        write_manifest(tmp_path / "manifest.json", COLUMNS)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be written"):
        write_manifest(tmp_path / "file" / "manifest.csv", COLUMNS)


def test_labels_written__says_what_to_type(tmp_path):
    written = labels_written(
        tmp_path / "labels.csv", {"sample_id": ["a"], "label": ["disc"]}, left_out=2
    )
    assert written.sentence.startswith("1 labels. 2 have no label yet")
    assert f"weakspot repair --labels {tmp_path / 'labels.csv'}" in written.sentence
    assert (
        "weakspot repair --labels /"
        not in labels_written(tmp_path / "labels.parquet", {"label": ["disc"]}).sentence
    )
