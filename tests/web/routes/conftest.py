"""A server that no test changes, and somebody who takes part in a study."""

import os
import shutil

import pytest
from starlette.testclient import TestClient
from tests.web.conftest import TOKEN, browser, entered

from weakspot.project.project import Project
from weakspot.web.application import create_app
from weakspot.web.jobs import JobRunner
from weakspot.web.server_parts import ServerParts
from weakspot.web.services.workspace import Workspace
from weakspot.web.state.store import StateStore


@pytest.fixture(scope="module")
def shared_parts(planted_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("read") / "shapes"
    project = Project.open(shutil.copytree(planted_folder, folder, copy_function=os.link))
    state = StateStore.beside(project.store.data)
    jobs = JobRunner(folder, state)
    yield ServerParts(workspace=Workspace(project), state=state, jobs=jobs, owner_token=TOKEN)
    jobs.close()
    state.close()


@pytest.fixture(scope="module")
def reader(shared_parts) -> TestClient:
    """The owner's browser on a server that no test changes."""
    return entered(browser(create_app(shared_parts)), TOKEN)


@pytest.fixture
def disc_study(owner) -> str:
    made = owner.post("/api/studies", json={"title": "Discs", "classes": ["disc"]})
    return made.json()["study_id"]


@pytest.fixture
def annotator(parts, owner, disc_study) -> TestClient:
    """The browser of somebody who was invited to a study of discs."""
    made = owner.post(f"/api/studies/{disc_study}/invites", json={"role": "annotator"}).json()
    return entered(browser(create_app(parts)), made["token"], invite="Ann")
