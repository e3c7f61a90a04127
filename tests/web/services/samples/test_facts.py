import numpy as np
import pytest

from weakspot.core.assistants import NO_ASSISTANTS
from weakspot.core.dataset import dataset_from_columns
from weakspot.core.samples import SampleSet
from weakspot.web.services.samples import files_of, names_of, sample_file


@pytest.fixture
def filed(open_world, tmp_path):
    """Samples in the project's folder, elsewhere, inside a larger file, far away, and without an image."""
    dataset = dataset_from_columns(
        class_names=["a"],
        labels=[0] * 5,
        locations=[
            str(tmp_path / "project" / "photos" / "one.jpg"),
            "/elsewhere/secret/two.jpg",
            "/elsewhere/shard.tar#bytes=512-9000",
            "https://me:password@example.org/three.jpg?signature=abc",
            None,
        ],
    )
    return open_world(
        samples=SampleSet(dataset=dataset, rows=np.arange(5)), assistants=NO_ASSISTANTS
    )


def test_names__any_source__file_name_or_what_the_source_calls_it(filed):
    dataset = filed.samples.dataset
    keys = dataset.table.column("key").to_pylist()
    assert names_of(dataset, np.arange(5)) == ["one.jpg", "two.jpg", keys[2], "three.jpg", keys[4]]


def test_files__outside_of_the_project__folders_are_not_told(filed):
    found = files_of(filed, np.arange(4))
    assert found[0] == "photos/one.jpg"
    assert found[1] == "two.jpg"
    assert "elsewhere" not in "".join(found)


def test_file__owner_asks__whole_path_without_secrets(filed, tmp_path):
    assert sample_file(filed, 1).path == "/elsewhere/secret/two.jpg"
    assert sample_file(filed, 1).is_there is False
    assert sample_file(filed, 3).path == "https://example.org/three.jpg"
    assert sample_file(filed, 3).is_there is None
    assert sample_file(filed, 4).path is None
    (tmp_path / "project" / "photos").mkdir()
    (tmp_path / "project" / "photos" / "one.jpg").write_bytes(b"1")
    assert sample_file(filed, 0).is_there is True
