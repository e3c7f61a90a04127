import numpy as np
import pytest

from weakspot.core.errors import StoreError
from weakspot.store.array_files import KEY_TYPE
from weakspot.store.project import ProjectStore


def test_open__no_project(tmp_path):
    with pytest.raises(StoreError, match="no weakspot data here yet"):
        ProjectStore.open(tmp_path)


def test_create__where_a_file_is(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot be made"):
        ProjectStore.create(tmp_path / "file" / "project")


def test_create__killed_before_the_version_was_written(tmp_path):
    (tmp_path / ".weakspot").mkdir()
    assert ProjectStore.create(tmp_path).current_tables() is None


def test_dataset__nothing_ingested(tmp_path):
    with pytest.raises(StoreError, match="no samples yet"):
        ProjectStore.create(tmp_path).dataset()


def test_writing__nested(tmp_path):
    project, other = ProjectStore.create(tmp_path), ProjectStore.create(tmp_path)
    with project.writing():
        with project.writing():
            pass
        # Leaving the inner block must not give the lock away.
        with pytest.raises(StoreError, match="being written by process"), other.writing():
            pass
    with other.writing():
        assert other.current_tables() is None


def test_writing__removes_what_a_killed_writer_left(tmp_path):
    project = ProjectStore.create(tmp_path)
    (project.data / "x.tmp-abcd").write_text("half")
    with project.writing():
        assert not (project.data / "x.tmp-abcd").exists()


def test_adopt__older_tables_and_readings_go(tmp_path, fill):
    project = ProjectStore.create(tmp_path)
    for key in ("old", "new"):
        parts = project.sample_parts(key)
        parts.resume()
        fill(project.tables(key))
        project.adopt(project.tables(key), parts)
    assert project.current_tables() == project.tables("new")
    assert [path.name for path in (project.data / "tables").iterdir()] == ["new"]
    assert list((project.data / "ingest").iterdir()) == [project.sample_parts("new").folder]


def test_current_tables__named_tables_are_gone(tmp_path):
    project = ProjectStore.create(tmp_path)
    (project.data / "current.json").write_text('{"tables": "gone"}')
    with pytest.raises(StoreError, match="tables it names are not there"):
        project.current_tables()


def test_predictions__kept_apart_by_classifier(tmp_path):
    project, key = ProjectStore.create(tmp_path), np.array([b"a" * 16], dtype=KEY_TYPE)
    project.predictions("net@1").append(key, np.array([[0.25, 0.75]], dtype=np.float32), None)
    assert project.predictions("net@1").missing(key).tolist() == [False]
    assert project.predictions("net@2").missing(key).tolist() == [True]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"schema_version": 99}', r"newer weakspot \(layout 99; this one reads up to 2\)"),
        ('{"schema_version": 1}', r"earlier weakspot \(layout 1; this one reads 2\)"),
        (None, r"earlier weakspot \(layout 0"),
        ("", "damaged"),
        ("{}", "damaged"),
        ('{"schema_version": "1"}', "damaged"),
        ('{"schema_version": 0}', "damaged"),
    ],
)
def test_open__another_layout_is_refused(tmp_path, content, said):
    path = ProjectStore.create(tmp_path).data / "format.json"
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(StoreError, match=said):
        ProjectStore.open(tmp_path)
    with pytest.raises(StoreError, match=said):
        ProjectStore.create(tmp_path)
