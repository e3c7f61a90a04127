"""A state of its own, invitations to a study in it, and a server whose project is never opened."""

import contextlib
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from fastapi import FastAPI
from sqlalchemy import insert
from starlette.testclient import TestClient
from tests.web.conftest import TOKEN

from weakspot.project.project import Project
from weakspot.web.application import create_app
from weakspot.web.auth import login as entering
from weakspot.web.jobs import JobRunner
from weakspot.web.server_parts import ServerParts
from weakspot.web.services.workspace import Workspace
from weakspot.web.state.store import INVITES, StateStore, now, token_hash
from weakspot.web.state.studies import create_study

INVITE = "the-token-of-an-invitation"


@pytest.fixture
def state(tmp_path):
    store = StateStore(f"sqlite:///{tmp_path / 'state.sqlite'}")
    yield store
    store.close()


@pytest.fixture
def invite(state) -> Callable[..., str]:
    """Make an invitation to a study of its own, and return the study's id."""

    def make(
        *, role: str = "annotator", uses: int = 2, days: float = 1.0, token: str = INVITE
    ) -> str:
        study = create_study(state, title="Shapes", classes=["disc"], instructions="")
        row = insert(INVITES).values(
            invite_id=token,
            token_hash=token_hash(token),
            study_id=study.study_id,
            role=role,
            uses=uses,
            uses_left=uses,
            created=now(),
            expires=now() + timedelta(days=days),
        )
        with state.writing() as rows:
            rows.execute(row)
        return study.study_id

    return make


@pytest.fixture
def light_parts(state, tmp_path):
    """A server's parts for requests that never reach the project."""
    with _light_parts(state, tmp_path / "shapes") as parts:
        yield parts


@pytest.fixture(scope="module")
def shared_app(tmp_path_factory) -> Iterator[FastAPI]:
    """A server for all tests of a file that change nothing in it."""
    folder = tmp_path_factory.mktemp("shared")
    with (
        contextlib.closing(StateStore(f"sqlite:///{folder / 'state.sqlite'}")) as state,
        _light_parts(state, folder / "shapes") as parts,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(entering, "TRIES", (1e6, 1e6))
        yield create_app(parts)


@contextlib.contextmanager
def _light_parts(state, folder) -> Iterator[ServerParts]:
    folder.mkdir()
    (folder / "weakspot.toml").write_text('[data]\nsource = "manifest.csv"\n')
    with contextlib.closing(JobRunner(folder, state, command=("true",))) as jobs:
        yield ServerParts(
            workspace=Workspace(Project.open(folder)), state=state, jobs=jobs, owner_token=TOKEN
        )


@pytest.fixture
def guest(light_parts, invite) -> Callable[[str], TestClient]:
    """Let somebody in through an invitation with a role, and return their browser."""

    def enter(role: str) -> TestClient:
        token = f"invitation-of-some-{role}-{now().timestamp()}"
        invite(role=role, token=token)
        client = TestClient(create_app(light_parts), base_url="http://127.0.0.1:8765")
        answer = client.post("/api/session", json={"invite": token, "name": "Ada"})
        assert answer.status_code == 200, answer.text
        client.headers["X-CSRF-Token"] = answer.json()["csrf_token"]
        return client

    return enter
