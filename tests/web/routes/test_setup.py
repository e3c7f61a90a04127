"""The set-up over the wire: for the owner alone, and only before there are samples."""

import time

import pytest
from tests.web.conftest import TOKEN, browser, entered

from weakspot.web.application import create_app
from weakspot.web.jobs import JobRunner
from weakspot.web.server_parts import ReadyState, ServerParts
from weakspot.web.services.setup import AllowedPlaces, begin_setup
from weakspot.web.state.store import StateStore

ROWS = [("cat", "cat", "in"), ("cat", "dog", "out"), ("dog", "dog", "in"), ("dog", "dog", "out")]


@pytest.fixture
def new_parts(tmp_path):
    (tmp_path / "answers.csv").write_text(
        "label,prediction,split,place\n"
        + "".join(f"{a},{b},validation,{c}\n" for a, b, c in ROWS * 60)
    )
    setup = begin_setup(
        tmp_path / "new",
        places=AllowedPlaces(start=tmp_path, roots=(tmp_path,)),
        source="",
        may_use_network=True,
    )
    state = StateStore.beside(setup.workspace.project.store.data)
    jobs = JobRunner(setup.folder, state)
    parts = ServerParts(
        workspace=setup.workspace, state=state, jobs=jobs, owner_token=TOKEN, setup=setup
    )
    parts.readiness.wait_for_setup()
    yield parts
    jobs.close()
    state.close()


@pytest.fixture
def new_owner(new_parts):
    return entered(browser(create_app(new_parts)), TOKEN)


def _done(client, kind):
    answer = client.post("/api/jobs", json={"kind": kind, "arguments": {}})
    job_id = answer.json()["job_id"]
    while (view := client.get(f"/api/jobs/{job_id}").json())["state"] in ("queued", "running"):
        time.sleep(0.05)
    assert view["state"] == "done", view["message"]
    return view["result"]


def test_setup__table__looked_at_written_run_and_opened(new_owner, new_parts):
    assert new_owner.get("/api/health").json()["state"] == "set-up"
    assert new_owner.get("/api/setup/places").json()["places"][0]["name"] == "new"
    look = new_owner.post("/api/setup/look", json={"source": "answers.csv"}).json()
    assert (look["kind"], look["n_samples"], look["problem"]) == ("predictions", 240, "")
    assert new_owner.post("/api/setup", json={"source": "answers.csv"}).json()["is_written"]
    assert {check["check"] for check in _done(new_owner, "preflight")["checks"]} >= {"splits"}
    assert _done(new_owner, "run")["run_id"]
    while (health := new_owner.get("/api/health").json())["state"] != "ready":
        assert health["state"] in ("set-up", "preparing"), health
        time.sleep(0.05)
    assert new_owner.get("/api/overview").status_code == 200
    assert new_parts.readiness.health.state is ReadyState.READY


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("/api/setup/look", {"source": "/etc"}),
        ("/api/setup/look", {"source": ""}),
        ("/api/setup", {"source": "nothing.csv"}),
        ("/api/setup", {"source": "answers.csv", "classifier": "../other.onnx"}),
    ],
)
def test_setup__bad_input__422_in_words(new_owner, route, body):
    answer = new_owner.post(route, json=body)
    assert answer.status_code == 422
    assert answer.json()["what"]


def test_setup__nobody_signed_in__401(new_parts):
    client = browser(create_app(new_parts))
    assert client.get("/api/setup").status_code == 401
    assert client.get("/api/setup/places").status_code == 401


def test_setup__project_with_samples__409(owner):
    assert owner.get("/api/setup").status_code == 409
    assert owner.post("/api/setup", json={"source": "."}).status_code == 409
