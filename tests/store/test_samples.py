import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest

from weakspot.core.dataset import Task
from weakspot.core.errors import StoreError
from weakspot.store.samples import SampleTables


@pytest.fixture
def tables(tmp_path, fill):
    tables = SampleTables(
        folder=tmp_path / "project" / "tables" / "k", packs=tmp_path / "project" / "ingest"
    )
    assert not tables.exists
    fill(tables)
    return tables


def test_dataset__as_written(tables):
    dataset = tables.dataset()
    assert tables.exists
    assert dataset.class_names == ("cat", "dog")
    assert dataset.task is Task.SINGLE_LABEL
    assert dataset.labels.tolist() == [1, 0, -1]
    assert dataset.splits.tolist() == [0, 1, 2]
    assert dataset.predictions.tolist() == [1, 0, -1]
    assert isinstance(dataset.predictions, np.memmap)
    assert dataset.probabilities is None


def test_dataset__locations_in_packs_become_paths(tables):
    packs = tables.packs
    assert tables.dataset().locations() == ["a.jpg", f"{packs}/g/images-0000.bin#bytes=0-4", None]
    stored = pq.read_table(tables.folder / "samples.parquet").column("location").to_pylist()
    assert stored[1] == "weakspot-pack:g/images-0000.bin#bytes=0-4"


def test_dataset__project_was_moved(tables, tmp_path):
    tables.dataset()
    shutil.move(tmp_path / "project", tmp_path / "elsewhere")
    moved = SampleTables(
        folder=tmp_path / "elsewhere" / "tables" / "k", packs=tmp_path / "elsewhere" / "ingest"
    )
    assert (
        moved.dataset().locations()[1] == f"{tmp_path}/elsewhere/ingest/g/images-0000.bin#bytes=0-4"
    )
    assert len(list(moved.folder.glob("samples-*.arrow"))) == 1


def test_dataset__damaged_copy_is_made_anew(tables):
    tables.dataset()
    copy = next(tables.folder.glob("samples-*.arrow"))
    copy.write_bytes(copy.read_bytes()[:100])
    assert tables.dataset().labels.tolist() == [1, 0, -1]


def test_dataset__damaged_parquet(tables):
    path = tables.folder / "samples.parquet"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(StoreError, match=r"damaged.*samples\.parquet"):
        tables.dataset()


@pytest.mark.parametrize(
    "content", ["{}", '{"class_names": ["a"], "task": "single-label", "n_samples": 7}', "no"]
)
def test_dataset__damaged_facts(tables, content):
    (tables.folder / "dataset.json").write_text(content)
    with pytest.raises(StoreError, match="damaged"):
        tables.dataset()


def test_dataset__copy_cannot_be_written(tables, monkeypatch):
    def refuse(path):
        raise PermissionError(path)

    monkeypatch.setattr("weakspot.store.atomic.replacing", refuse)
    assert tables.dataset().labels.tolist() == [1, 0, -1]
    assert not list(tables.folder.glob("*.arrow"))


def test_writing__error_leaves_no_tables(tmp_path):
    tables = SampleTables(folder=tmp_path / "tables" / "k", packs=tmp_path)
    with pytest.raises(ValueError, match="stop"), tables.writing(n_samples=3):
        raise ValueError("stop")
    assert not tables.exists
    assert not list((tmp_path / "tables").iterdir())


def test_quarantine__read_back(tables):
    assert tables.quarantine().to_pylist() == [
        {"key": "bad", "location": "bad.jpg", "reason": "truncated", "detail": "cut"}
    ]
    assert tables.duplicates().num_rows == 0
