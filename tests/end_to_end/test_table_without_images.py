"""What a new user does with a table of labels, predictions and columns: no images, no model."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

from weakspot.cli.main import main
from weakspot.project import doctor
from weakspot.project.project import Project
from weakspot.web.application import create_app
from weakspot.web.jobs import JobRunner
from weakspot.web.server_parts import ServerParts
from weakspot.web.services.workspace import Workspace
from weakspot.web.state.store import StateStore

N_ROWS = 3000
TOKEN = "the-owners-token"
HEADER = "label,predicted,split,colour,size,weight,cloudy,shelf"


def _table(*, with_paths: bool = False) -> str:
    """Green apples are mostly taken for pears, small ones more often; nothing else matters."""
    draws = np.random.default_rng(7)
    lines = [("path," if with_paths else "") + HEADER]
    for number in range(N_ROWS):
        label = str(draws.choice(["apple", "pear"]))
        colour = str(draws.choice(["red", "green", "yellow"], p=[0.5, 0.3, 0.2]))
        size = str(draws.choice(["small", "large"]))
        is_hard = label == "apple" and colour == "green"
        rate = (0.8 if size == "small" else 0.4) if is_hard else 0.05
        other = "pear" if label == "apple" else "apple"
        answer = other if draws.random() < rate else label
        split = str(draws.choice(["validation", "train", "pool"], p=[0.7, 0.2, 0.1]))
        further = [f"{draws.normal(100, 20):.1f}", *draws.choice(["yes", "no"], 2)]
        cells = [label, answer, split, colour, size, *further]
        lines.append(",".join([f"images/{number}.jpg", *cells] if with_paths else cells))
    return "\n".join(lines) + "\n"


@pytest.fixture
def weakspot(monkeypatch, capsys):
    """Type a command; what it printed, what it complained of, and its exit code."""

    def type_in(*words):
        monkeypatch.setattr(sys, "argv", ["weakspot", *map(str, words)])
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        said = capsys.readouterr()
        return code, said.out, said.err

    return type_in


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    """A project of the table with one run."""
    folder = tmp_path_factory.mktemp("table")
    (folder / "table.csv").write_text(_table(), encoding="utf-8")
    project = Project.create(folder / "t", data=str(folder / "table.csv"))
    project.run()
    project.report()
    return folder / "t"


def test_init_and_run__work_at_the_first_try(weakspot, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text(_table(), encoding="utf-8")
    assert weakspot("init", tmp_path / "t", "--data", table)[0] == 0
    code, out, _ = weakspot("run", "-p", tmp_path / "t", "-v")
    assert code == 0
    lines = out.splitlines()
    assert lines[1].startswith("Uses 5 columns; no images or embeddings: clusters, ")
    assert sum("no images or embeddings" in line for line in lines) == 1
    assert "apple: green" in out
    assert "photo" not in out
    assert "p = 0," not in out
    assert "in words: apple with colour = green" in out
    assert "weakspot lab align" not in out


def test_run__paths_to_images_that_are_not_there(weakspot, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text(_table(with_paths=True), encoding="utf-8")
    weakspot("init", tmp_path / "t", "--data", table)
    code, out, _ = weakspot("run", "-p", tmp_path / "t", "-v")
    assert code == 0
    assert "apple: green" in out
    assert f"none of the first {N_ROWS} is there, so it is read without images" in out


def test_run__methods_that_cannot_work_get_one_sentence_before_anything_is_read(weakspot, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text(_table(), encoding="utf-8")
    weakspot("init", tmp_path / "t", "--data", table)
    code, out, err = weakspot(
        "run", "-p", tmp_path / "t", "--method", "directions", "--method", "mixture"
    )
    assert code == 2
    assert not out
    assert err.count("need embeddings") == 1
    assert "--method attributes" in err
    assert "ingest" not in err


def test_hypothesis__values_of_columns(weakspot, ready):
    code, out, _ = weakspot(
        "ask",
        "-p",
        ready,
        "--class",
        "apple",
        "colour = green",
        "colour = green and size = small",
        "cloudy",
    )
    assert code == 0
    assert out.count("good: ") == 2
    assert "matches but does not separate" in out
    assert "Samples whose “colour” is green." in out
    code, _, err = weakspot("ask", "-p", ready, "--class", "apple", "colour = blue")
    assert code == 2
    assert "Its values are green, red, yellow." in err
    code, _, err = weakspot("ask", "-p", ready, "--class", "apple", "on a shelf")
    assert code == 2
    assert "align" not in err


def test_hypothesis__asks_the_same_ledger_as_a_run(ready):
    project = Project.open(ready)
    report = project.ask("apple", ["colour = green"])
    (answer,) = report.answers
    assert answer.fit == "good"
    assert answer.compared_with == "columns"
    assert answer.confirmation.inside.value > answer.confirmation.outside.value + 0.3
    assert project.ask("apple", ["colour = green"]).n_looks == report.n_looks


def test_prove__a_run_of_ones_own_words(ready, tmp_path):
    own = shutil.copytree(ready, tmp_path / "t")
    shutil.copy(ready.parent / "table.csv", tmp_path)
    record = Project.open(own).prove("apple", ["colour = green and size = small"])
    (pair,) = record.published()
    assert pair[0].title == "apple: colour = green and size = small"


def test_check__baseline_and_gate(weakspot, ready, tmp_path):
    baseline = tmp_path / "baseline.json"
    code, _, err = weakspot("check", "-p", ready, "--write-baseline", baseline)
    assert code == 0, err
    policy = tmp_path / "policy.toml"
    policy.write_text("[overall_accuracy]\nmin = 0.5\n[new_slices]\nmax = 0\n", encoding="utf-8")
    code, out, err = weakspot("check", "-p", ready, "--policy", policy, "--baseline", baseline)
    assert code == 0, out + err


def test_report__speaks_of_samples_not_images(weakspot, ready):
    code, out, _ = weakspot("report", "-p", ready)
    assert code == 0
    html, markdown, _ = out.splitlines()
    text = Path(markdown).read_text(encoding="utf-8")
    assert "“apple” samples that fit “green”" in text
    assert "a photo of" not in text
    assert "<img" not in Path(html).read_text(encoding="utf-8")


def test_nearest__refuses_and_says_what_to_do(weakspot, ready):
    code, _, err = weakspot("nearest", "-p", ready, "green")
    assert code == 2
    assert "no embeddings" in err


def test_repair__a_clear_answer(weakspot, ready):
    code, out, err = weakspot("repair", "-p", ready)
    assert code in (0, 2)
    assert "Traceback" not in out + err
    assert (out + err).strip()


def test_doctor_and_export__work_without_images(weakspot, ready, tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "import_problems", lambda modules: {})  # takes long: tried at home
    assert (
        "In order: this machine and the project are ready."
        in weakspot("doctor", "-p", ready, "--offline")[1]
    )
    code, out, err = weakspot(
        "export", "-p", ready, "--to", "label-studio", "--out", tmp_path / "tasks"
    )
    assert code in (0, 2)
    assert "Traceback" not in out + err
    code, _, err = weakspot("export", "-p", ready, "--static", tmp_path / "pages")
    assert code == 0, err
    assert (tmp_path / "pages" / "index.html").is_file()


@pytest.fixture
def client(ready):
    project = Project.open(ready)
    state = StateStore.beside(project.store.data)
    jobs = JobRunner(ready, state)
    parts = ServerParts(workspace=Workspace(project), state=state, jobs=jobs, owner_token=TOKEN)
    opened = TestClient(create_app(parts), base_url="http://127.0.0.1:8765")
    session = opened.post("/api/session", json={"token": TOKEN}).json()
    opened.headers["X-CSRF-Token"] = session["csrf_token"]
    yield opened
    jobs.close()
    state.close()


def test_pages__answer_without_images(client):
    assert client.get("/api/session").json()["has_images"] is False
    for path in (
        "overview",
        "classes",
        "slices",
        "attributes",
        "runs",
        "repair/options",
        "generation/setup",
    ):
        answer = client.get(f"/api/{path}")
        assert answer.status_code == 200, (path, answer.text)
    slices = client.get("/api/slices").json()["slices"]
    best = next(line for line in slices if line["title"] == "apple: green")
    page = client.get(f"/api/slices/{best['slice_id']}/members", params={"kind": "members"}).json()
    tables = client.get("/api/classes").json()["tables"]
    facts = client.get(
        f"/api/samples/{page['samples'][0]['row']}", params={"tables": tables}
    ).json()
    assert {"name": "colour", "value": "green"} in facts["columns"]


def test_pages__a_class_is_asked_for_a_value(client):
    asked = {"title": "apple", "phrase": "colour = green"}
    live = client.post(
        "/api/classes/phrase", json={**asked, "is_submitted": False, "offset": 0, "limit": 10}
    )
    assert live.status_code == 200, live.text
    assert live.json()["fit"] == "good"
    checked = client.post("/api/classes/check", json=asked)
    assert checked.status_code == 200, checked.text
    assert checked.json()["rule"] == "Samples whose “colour” is green."
    accepted = client.post("/api/classes/accept", json=asked)
    assert accepted.status_code == 200, accepted.text
    assert json.loads(accepted.text)["title"] == "apple: colour = green"
