"""A planted project with a verified run, the server on it, and people who came in."""

import shutil
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.build import planted_project

from weakspot.project.project import Project
from weakspot.web.application import create_app
from weakspot.web.jobs import JobRunner
from weakspot.web.server_parts import ServerParts
from weakspot.web.services.workspace import Workspace
from weakspot.web.state.store import StateStore

TOKEN = "the-owners-token"


@pytest.fixture(scope="session")
def planted_folder(tmp_path_factory) -> Path:
    """A folder with 900 planted images (green discs are rare), embedded, with one verified run; copy it before you change it."""
    project = planted_project(tmp_path_factory.mktemp("planted"), 900)
    project.verify(project.discover().run_id)
    return project.folder


@pytest.fixture
def own_folder(planted_folder, tmp_path) -> Path:
    """A copy of the planted project that a test may change."""
    return Path(shutil.copytree(planted_folder, tmp_path / "shapes"))


@pytest.fixture
def parts(own_folder):
    project = Project.open(own_folder)
    state = StateStore.beside(project.store.data)
    jobs = JobRunner(own_folder, state)
    yield ServerParts(workspace=Workspace(project), state=state, jobs=jobs, owner_token=TOKEN)
    jobs.close()
    state.close()


@pytest.fixture
def owner(parts) -> TestClient:
    """The owner's browser."""
    return entered(browser(create_app(parts)), TOKEN)


def browser(app: FastAPI) -> TestClient:
    """A browser of somebody who has not come in."""
    return TestClient(app, base_url="http://127.0.0.1:8765")


def entered(client: TestClient, token: str, *, invite: str = "") -> TestClient:
    """Come in with the owner's token, or under a name with that of an invitation; further requests carry the session."""
    entry = {"invite": token, "name": invite} if invite else {"token": token}
    answer = client.post("/api/session", json=entry)
    assert answer.status_code == 200, answer.text
    client.headers["X-CSRF-Token"] = answer.json()["csrf_token"]
    return client
