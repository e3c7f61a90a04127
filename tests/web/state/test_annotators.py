"""Eight people at once, each a process of their own, against a real server; then the server is killed in the middle of a study."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from weakspot.project.project import Project

TOKEN = "the-token-of-the-owner-in-tests"
N_PEOPLE, N_PHRASES = 8, 12
SERVER = """
import sys
from pathlib import Path
from weakspot.web.serving import ServeRequest, serve_project
folder, url, token, port = sys.argv[1:]
request = ServeRequest(folder=Path(folder), port=int(port), state_url=url, opens_browser=False, token=token)
serve_project(request, say=lambda text: print(text, flush=True))
"""
# What one person does: come in, say phrases, report time, check one and accept one; every answer is told line by line.
PERSON = """
import json, sys, httpx
address, invite, study, title, number, n_phrases = sys.argv[1:]
words = ["green", "green disc", "red", "blue", "disc", "small", "large", "striped", "dark", "bright", "plain", "square"]
def tell(**fields):
    print(json.dumps(fields), flush=True)
with httpx.Client(base_url=address, timeout=120) as client:
    session = client.post("/api/session", json={"invite": invite, "name": f"Person {number}"})
    session.raise_for_status()
    client.headers["X-CSRF-Token"] = session.json()["csrf_token"]
    tell(cookies=dict(client.cookies), csrf_token=session.json()["csrf_token"])
    for place in range(int(n_phrases)):
        said = {"title": title, "phrase": f"{words[place % len(words)]} {number}", "study": study}
        client.post("/api/classes/phrase", json={**said, "is_submitted": True}).raise_for_status()
        tell(phrase=said["phrase"])
        client.post(f"/api/studies/{study}/activity", json={"seconds": 0.01, "class_title": title}).raise_for_status()
    mine = {"title": title, "phrase": f"green {number}", "study": study}
    best = client.post("/api/classes/phrase", json=mine)
    best.raise_for_status()
    mine["threshold"] = best.json()["threshold"] - 0.001 * (1 + int(number))  # so that everybody accepts a slice of their own
    client.post("/api/classes/check", json=mine).raise_for_status()
    tell(phrase=mine["phrase"])
    accepted = client.post("/api/classes/accept", json=mine)
    accepted.raise_for_status()
    tell(accepted=accepted.json()["slice_id"])
    client.post(f"/api/studies/{study}/finished", json={"class_title": title}).raise_for_status()
"""


@pytest.fixture
def folder(own_folder) -> Path:
    """A planted project on which proving a slice is cheap."""
    settings = own_folder / "weakspot.toml"
    settings.write_text(
        f"{settings.read_text()}[discover.parameters.hypothesis]\nphrases = {{}}\nn_permutations = 20\n"
    )
    return own_folder


def test_study__eight_people_at_once_and_a_killed_server__nothing_is_lost(folder, url):
    log = folder.parent / "server.log"
    with _serving(folder, url, log) as (server, address), _owner(address) as owner:
        title = owner.get("/api/classes").json()["classes"][0]["title"]
        study = owner.post("/api/studies", json={"title": "Together", "classes": [title]}).json()[
            "study_id"
        ]
        invite = owner.post(f"/api/studies/{study}/invites", json={"uses": N_PEOPLE + 1}).json()[
            "token"
        ]
        people = [_person(address, invite, study, title, number) for number in range(N_PEOPLE)]
        told = [_told(person) for person in people]
        _check_study(owner, folder, study, told)
        late = _person(address, invite, study, title, N_PEOPLE, n_phrases=1000)
        first = [json.loads(late.stdout.readline()) for _ in range(4)]
        server.send_signal(signal.SIGKILL)
        server.wait()
        rest, _ = late.communicate()
        acknowledged = [*first, *(json.loads(line) for line in rest.splitlines())]
    # On the same port, as a restarted server would be: browsers keep cookies by it.
    with (
        _serving(folder, url, log, port=int(address.rpartition(":")[2])) as (_, address),
        _owner(address) as owner,
    ):
        kept = [row["phrase"] for row in owner.get(f"/api/studies/{study}/table").json()["rows"]]
        assert set(_phrases([acknowledged])) <= set(kept)
        assert set(_phrases(told)) <= set(kept)
        _check_session_goes_on(address, first[0], study, title)
    assert "Traceback" not in log.read_text()


def _check_study(owner: httpx.Client, folder: Path, study: str, told: list[list[dict]]) -> None:
    """Every phrase is there exactly once for every time it was said, and every accepted slice is in the run."""
    rows = owner.get(f"/api/studies/{study}/table").json()["rows"]
    assert sorted(row["phrase"] for row in rows) == sorted(_phrases(told))
    people = owner.get(f"/api/studies/{study}/people").json()["people"]
    assert [(one["n_phrases"], one["n_accepted"], len(one["finished"])) for one in people] == [
        (N_PHRASES + 1, 1, 1)
    ] * N_PEOPLE
    assert all(0 < one["seconds"] <= N_PHRASES * 0.01 + 1e-6 for one in people)
    record = Project.open(folder).run_record(None)
    accepted = {entry["accepted"] for entries in told for entry in entries if "accepted" in entry}
    assert len(accepted) == N_PEOPLE
    assert accepted <= {found.slice_id for found in record.slices}
    assert accepted <= {entry.slice_id for entry in record.evidence}
    assert {decision.by for decision in record.decisions} == {
        f"Person {number}" for number in range(N_PEOPLE)
    }


def _check_session_goes_on(address: str, session: dict, study: str, title: str) -> None:
    headers = {"X-CSRF-Token": session["csrf_token"]}
    with httpx.Client(
        base_url=address, timeout=120, cookies=session["cookies"], headers=headers
    ) as client:
        said = {"title": title, "phrase": "after the fall", "study": study, "is_submitted": True}
        assert client.post("/api/classes/phrase", json=said).status_code == 200
        assert client.get(f"/api/studies/{study}/progress").json()["n_phrases"] >= 2


def _phrases(told: list[list[dict]]) -> list[str]:
    return [entry["phrase"] for entries in told for entry in entries if "phrase" in entry]


@contextmanager
def _serving(
    folder: Path, url: str, log: Path, *, port: int = 0
) -> Iterator[tuple[subprocess.Popen, str]]:
    with log.open("a") as stream:
        start = [sys.executable, "-c", SERVER, str(folder), url, TOKEN, str(port)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        server = subprocess.Popen(
            start, stdout=subprocess.PIPE, stderr=stream, text=True, env=environment
        )
    try:
        address = ""
        while not address:
            line = server.stdout.readline()
            assert line, log.read_text()
            address = next(
                (word.partition("#")[0] for word in line.split() if word.startswith("http")), ""
            )
        yield server, address.rstrip("/")
    finally:
        if server.poll() is None:
            server.send_signal(signal.SIGINT)
        server.communicate()


@contextmanager
def _owner(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address, timeout=120) as client:
        answer = client.post("/api/session", json={"token": TOKEN})
        assert answer.status_code == 200, answer.text
        client.headers["X-CSRF-Token"] = answer.json()["csrf_token"]
        while client.get("/api/health").json()["state"] == "preparing":
            time.sleep(0.1)
        yield client


def _person(
    address: str, invite: str, study: str, title: str, number: int, *, n_phrases: int = N_PHRASES
) -> subprocess.Popen:
    given = [address, invite, study, title, str(number), str(n_phrases)]
    script = textwrap.dedent(PERSON)
    return subprocess.Popen(
        [sys.executable, "-c", script, *given],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _told(person: subprocess.Popen) -> list[dict]:
    out, errors = person.communicate()
    assert person.returncode == 0, errors
    return [json.loads(line) for line in out.splitlines()]
