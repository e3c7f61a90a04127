import pytest

from weakspot.core.errors import StoreError
from weakspot.core.run import RunRecord
from weakspot.store.runs import RunStore


def record(run_id, **fields):
    return RunRecord(
        run_id=run_id, command="weakspot run", started="2026-01-02T03:04:05+00:00", seed=3, **fields
    )


@pytest.fixture
def runs(tmp_path):
    return RunStore(folder=tmp_path / "runs")


def test_save__round_trip(runs):
    given = record(
        "20260102-a", settings={"seed": 3, "data": {"source": "x"}}, versions={"numpy": "2"}
    )
    runs.save(given)
    assert runs.load("20260102-a") == given


def test_latest__newest_by_id(runs):
    assert runs.latest() is None
    runs.save(record("20260103-b"))
    runs.save(record("20260102-a"))
    assert runs.latest().run_id == "20260103-b"
    assert [found.run_id for found in runs.records()] == ["20260102-a", "20260103-b"]


def test_load__unknown_run_lists_the_others(runs):
    runs.save(record("20260102-a"))
    with pytest.raises(StoreError, match=r"no run 'b'.*\['20260102-a'\]"):
        runs.load("b")


def test_load__newer_version(runs):
    path = runs.save(record("a"))
    path.write_text(path.read_text().replace('"record_version": 2', '"record_version": 99'))
    with pytest.raises(StoreError, match="newer weakspot"):
        runs.load("a")


@pytest.mark.parametrize("content", ["{", "{}", '{"record_version": 1, "run_id": "a"}'])
def test_load__damaged(runs, content):
    path = runs.save(record("a"))
    path.write_text(content)
    with pytest.raises(StoreError, match="damaged"):
        runs.load("a")


def test_save_artefact__round_trip(runs):
    path = runs.save_artefact("a", "report.html", b"<p>")
    assert path.read_bytes() == b"<p>"
    assert runs.load_artefact("a", "report.html") == b"<p>"
    with pytest.raises(StoreError, match=r"no file 'head.npz'"):
        runs.load_artefact("a", "head.npz")


@pytest.mark.parametrize("name", ["../x", "/etc/x", "", "a/b", ".hidden"])
def test_save_artefact__unsafe_name(runs, name):
    with pytest.raises(StoreError, match="may hold only letters"):
        runs.save_artefact("a", name, b"")
