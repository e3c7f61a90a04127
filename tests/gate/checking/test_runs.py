import pytest

from weakspot.core.errors import StoreError
from weakspot.gate.baseline import encode_baseline
from weakspot.gate.runs import baseline_of, ensure_run, load_baseline, write_baseline


@pytest.fixture
def written(table_project, tmp_path):
    project = table_project()
    record = ensure_run(project).record
    path = tmp_path / "kept/baseline.json"
    write_baseline(path, baseline_of(project, record))
    return project, record, path


def test_baseline__holds_findings_and_predictions_and_no_path(written):
    project, record, path = written
    baseline, text = load_baseline(path), path.read_text()
    assert [found.slice_id for found, _ in baseline.run.published()] == [
        found.slice_id for found, _ in record.published()
    ]
    assert baseline.predictions.keys.count == 400
    assert baseline.run.settings == {}
    assert str(project.folder) not in text
    assert "fruit-12" not in text


def test_load_baseline__a_project_gives_the_same_as_its_file(written):
    project, _, path = written
    assert encode_baseline(load_baseline(project.folder)) == path.read_bytes()


def test_load_baseline__a_run_record_has_no_predictions(written):
    project, record, _ = written
    path = project.store.runs.run_folder(record.run_id) / "run.json"
    baseline = load_baseline(path)
    assert baseline.predictions is None
    assert baseline.run.run_id == record.run_id


def test_load_baseline__a_project_without_a_run_is_refused(table_project):
    project = table_project()
    project.ingest()
    with pytest.raises(StoreError, match="no finished run"):
        load_baseline(project.folder)


def test_load_baseline__a_folder_that_is_no_project_is_refused(tmp_path):
    with pytest.raises(StoreError, match=r"without weakspot\.toml"):
        load_baseline(tmp_path)


def test_load_baseline__a_missing_file_is_named(tmp_path):
    with pytest.raises(StoreError, match="No such file") as caught:
        load_baseline(tmp_path / "none.json")
    assert caught.value.where.endswith("none.json")


def test_write_baseline__where_nothing_can_be_written_it_says_so(written, tmp_path):
    project, record, _ = written
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written"):
        write_baseline(tmp_path / "file/baseline.json", baseline_of(project, record))
