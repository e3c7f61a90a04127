"""Starting and watching work over the wire."""

import json
import shutil
import time
from pathlib import Path

import pytest

from weakspot.web.services.compare import place_of


@pytest.fixture
def own_folder(fruit_folder, tmp_path) -> Path:
    return Path(shutil.copytree(fruit_folder, tmp_path / "fruit"))


def test_jobs__repair_started__progress_result_and_download(owner):
    answer = owner.post(
        "/api/jobs", json={"kind": "repair", "arguments": {"strategy": "up-weight"}}
    )
    assert answer.status_code == 200, answer.text
    job_id = answer.json()["job_id"]
    while (view := owner.get(f"/api/jobs/{job_id}").json())["state"] in ("queued", "running"):
        time.sleep(0.05)
    assert (view["state"], view["message"], view["started_by"]) == ("done", "", "owner")
    assert [job["job_id"] for job in owner.get("/api/jobs").json()["jobs"]] == [job_id]
    results = owner.get("/api/repair/results").json()
    assert results["repairs"][0]["section"]["strategy"] == "up-weight"
    head = owner.get("/api/repair/downloads/repaired_head.safetensors")
    assert head.status_code == 200
    assert head.headers["content-disposition"] == 'attachment; filename="repaired_head.safetensors"'
    assert len(head.content) == int(head.headers["content-length"]) > 100


def test_jobs__bad_arguments__422_and_nothing_is_started(owner):
    for body in (
        {"kind": "nonsense", "arguments": {}},
        {"kind": "run", "arguments": {"folder": "/etc"}},
        {"kind": "run", "arguments": {"methods": ["a b"]}},
        {"kind": "repair", "arguments": {"budget": 1e400}},
        {"kind": "repair", "arguments": {"slice_ids": ["\x00"]}},
        {"kind": "report", "arguments": {"run": ["x"]}},
        {"kind": "report", "arguments": {}, "more": 1},
        {"kind": "run" * 50, "arguments": {}},
    ):
        sent = {"content": json.dumps(body), "headers": {"Content-Type": "application/json"}}
        assert owner.post("/api/jobs", **sent).status_code == 422, body
    assert owner.get("/api/jobs").json() == {"jobs": []}


def test_jobs__unknown__404(owner):
    for method, path in (("GET", ""), ("POST", "/cancel"), ("POST", "/resume")):
        assert owner.request(method, f"/api/jobs/nothing{path}").status_code == 404


def test_jobs__comparison_started_by_a_script_that_saw_no_page__knows_where_the_other_is(
    owner, parts, tmp_path, monkeypatch
):
    monkeypatch.setattr(parts.workspace, "others", (tmp_path / "other",))
    started = owner.post("/api/jobs", json={"kind": "compare", "arguments": {"other": "other"}})
    assert owner.post(f"/api/jobs/{started.json()['job_id']}/cancel").status_code == 200
    assert place_of(parts.workspace.project.store, "other") == (tmp_path / "other").resolve()
