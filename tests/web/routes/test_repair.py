"""Repair over the wire: who may see, who may take away."""

import shutil
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.web.conftest import browser

from weakspot.web.application import create_app
from weakspot.web.server_parts import person_of
from weakspot.web.state.store import Person, Role


@pytest.fixture
def own_folder(fruit_folder, tmp_path) -> Path:
    return Path(shutil.copytree(fruit_folder, tmp_path / "fruit"))


@pytest.fixture
def viewer(parts) -> TestClient:
    app, vera = create_app(parts), Person(person_id="v", name="Vera", role=Role.VIEWER)
    app.dependency_overrides[person_of] = lambda: vera
    return browser(app)


def test_repair__viewer__sees_but_takes_nothing_away(viewer, parts):
    parts.workspace.project.repair()
    assert viewer.get("/api/repair/options").status_code == 200
    assert viewer.get("/api/repair/results").json()["repairs"][0]["section"]["arms"]
    assert viewer.get("/api/jobs").status_code == 200
    for path in ("downloads", "downloads/repaired_head.safetensors"):
        assert viewer.get(f"/api/repair/{path}").status_code == 403


def test_download__other_names__refused(owner, parts):
    parts.workspace.project.repair()
    up = ("../run.json", "%2e%2e%2frun.json")
    for name in (*up, "run.json", "repaired_head.safetensors%00", "weakspot.toml"):
        assert owner.get(f"/api/repair/downloads/{name}").status_code in (404, 422), name


def test_download__nothing_repaired__409(owner):
    assert owner.get("/api/repair/downloads").json()["files"] == []
    assert owner.get("/api/repair/downloads/plan.json").status_code == 409
