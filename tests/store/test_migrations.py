import json

import pytest

from weakspot.core.errors import StoreError
from weakspot.store import project
from weakspot.store.project import ProjectStore
from weakspot.store.samples import SampleTables


@pytest.fixture
def version_0(tmp_path, fill):
    """A project as version 0 wrote it: the tables lie directly in the data folder, and no file names the version."""
    tables = SampleTables(folder=tmp_path / "made", packs=tmp_path)
    fill(tables, locations=("a.jpg", "b.jpg"))
    data = tmp_path / "project" / ".weakspot"
    data.mkdir(parents=True)
    for name in project.FLAT_TABLES:
        (tables.folder / name).rename(data / name)
    return tmp_path / "project"


def test_migrate__version_0(version_0):
    dataset = ProjectStore.open(version_0).dataset()
    assert dataset.locations() == ["a.jpg", "b.jpg"]
    assert dataset.labels.tolist() == [1, 0]
    assert json.loads((version_0 / ".weakspot" / "format.json").read_text()) == {
        "schema_version": project.SCHEMA_VERSION
    }
    assert not (version_0 / ".weakspot" / "samples.parquet").exists()


def test_migrate__interrupted_half_way(version_0):
    data = version_0 / ".weakspot"
    (data / "tables" / project.FLAT_KEY).mkdir(parents=True)
    (data / "samples.parquet").rename(data / "tables" / project.FLAT_KEY / "samples.parquet")
    assert len(ProjectStore.open(version_0).dataset()) == 2


def test_migrate__a_step_that_fails__is_done_again(version_0, monkeypatch):
    def fail(data):
        raise OSError("disk full")

    with monkeypatch.context() as context:
        context.setitem(project.MIGRATIONS, 0, fail)
        with pytest.raises(OSError, match="disk full"):
            ProjectStore.open(version_0)
    assert project.layout_version(version_0 / ".weakspot") == 0
    assert len(ProjectStore.open(version_0).dataset()) == 2


def test_migrate__nothing_to_do_the_second_time(version_0):
    ProjectStore.open(version_0)
    before = {
        path: path.stat().st_mtime_ns
        for path in (version_0 / ".weakspot").rglob("*")
        if path.is_file()
    }
    ProjectStore.open(version_0)
    assert {
        path: path.stat().st_mtime_ns
        for path in (version_0 / ".weakspot").rglob("*")
        if path.is_file()
    } == before


def test_migrate__version_1__folders_get_todays_names_and_keep_their_files(tmp_path):
    data = ProjectStore.create(tmp_path).data
    project.write_version(data, 1)
    for name in ("vectors/encoder", "outcomes/model", "drawn/pictures/ab", "drawn/vectors"):
        (data / name).mkdir(parents=True)
        (data / name / "file").write_text(name)
    ProjectStore.open(tmp_path)
    assert (data / "embeddings" / "encoder" / "file").read_text() == "vectors/encoder"
    assert (data / "predictions" / "model" / "file").read_text() == "outcomes/model"
    assert (data / "generated" / "images" / "ab" / "file").read_text() == "drawn/pictures/ab"
    assert (data / "generated" / "embeddings" / "file").read_text() == "drawn/vectors"
    assert not any((data / name).exists() for name in ("vectors", "outcomes", "drawn"))
    assert project.layout_version(data) == project.SCHEMA_VERSION


def test_migrate__version_1__interrupted_half_way(tmp_path):
    data = ProjectStore.create(tmp_path).data
    project.write_version(data, 1)
    (data / "embeddings").mkdir()
    (data / "outcomes").mkdir()
    ProjectStore.open(tmp_path)
    assert (data / "predictions").is_dir()


def test_migrations__a_step_for_every_version():
    assert sorted(project.MIGRATIONS) == list(range(project.SCHEMA_VERSION))


def test_layout_version__newer(tmp_path):
    data = ProjectStore.create(tmp_path).data
    (data / "format.json").write_text('{"schema_version": 99}')
    with pytest.raises(StoreError, match=r"newer weakspot \(layout 99; this one reads up to 2\)"):
        ProjectStore.open(tmp_path)


@pytest.mark.parametrize("content", ["", "{}", '{"schema_version": "1"}', '{"schema_version": 0}'])
def test_layout_version__damaged(tmp_path, content):
    data = ProjectStore.create(tmp_path).data
    (data / "format.json").write_text(content)
    with pytest.raises(StoreError, match="damaged"):
        ProjectStore.open(tmp_path)
