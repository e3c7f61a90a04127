"""The overview over the wire."""

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def own_folder(fruit_folder, tmp_path) -> Path:
    return Path(shutil.copytree(fruit_folder, tmp_path / "fruit"))


def test_overview__owner__run_and_images(owner, parts):
    shown = owner.get("/api/overview").json()
    run_id = parts.workspace.project.run_record().run_id
    assert shown["run"]["run_id"] == run_id
    assert owner.get("/api/overview", params={"run": run_id}).json() == shown
    assert owner.get("/api/runs").json()["runs"][0]["run_id"] == run_id
    assert len(owner.get(f"/api/runs/{run_id}/images").json()["slices"]) == 1
    assert any(one["is_configured"] for one in owner.get("/api/discoverers").json()["methods"])


@pytest.mark.parametrize("run", ["nothing", "..", "a/b", "x" * 300, "\x00", "%2e%2e%2f"])
def test_overview__unknown_run__refused(owner, run):
    for path in (
        "/api/overview",
        "/api/repair/options",
        "/api/repair/results",
        "/api/repair/downloads",
    ):
        assert 400 <= owner.get(path, params={"run": run}).status_code < 500


def test_report__before_and_after_it_is_written__404_then_a_page_that_can_do_nothing(owner, parts):
    project = parts.workspace.project
    run_id = project.run_record().run_id
    assert owner.get(f"/api/runs/{run_id}/report").status_code == 404
    assert owner.get("/api/overview").json()["has_report"] is False
    project.report(run_id)
    answer = owner.get(f"/api/runs/{run_id}/report")
    assert answer.status_code == 200
    assert "sandbox" in answer.headers["content-security-policy"]
    assert "script" not in answer.headers["content-security-policy"]
    assert answer.headers["content-type"].startswith("text/html")
    assert owner.get("/api/overview").json()["has_report"] is True
    assert owner.get("/api/runs/nothing/report").status_code == 404


def test_first_answer__as_the_page_and_the_terminal_begin(owner, parts):
    shown = owner.get("/api/overview").json()["run"]
    answer = owner.get(f"/api/runs/{shown['run_id']}/answer").json()
    assert answer == shown["answer"]
    assert answer["headline"].startswith("fruit.onnx: ")
    assert answer["classes"][0]["right"]["total"] > 0
    record = parts.workspace.project.run_record()
    assert [one["slice_id"] for one in answer["findings"] if one["slice_id"]] == [
        found.slice_id for found in record.findings()
    ]


def test_first_answer__unknown_run__refused(owner):
    assert owner.get("/api/runs/nothing/answer").status_code == 409
