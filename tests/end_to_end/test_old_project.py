"""A project of weakspot 0.1 is opened, shown, run, repaired and served, wherever it was unpacked."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import pytest

import weakspot

HERE = Path(__file__).parent / "old_project"
FACTS = json.loads((HERE / "facts.json").read_text(encoding="utf-8"))
SHAPES, PACKED = FACTS["shapes"], FACTS["packed"]
ADDRESS = re.compile(r"(http://\S+?)/#token=(\S+)")
MAX_SECONDS = 600


@pytest.fixture
def unpacked(tmp_path) -> Path:
    """Both projects, in a folder that they were never in before."""
    with zipfile.ZipFile(HERE / "project-0.1.zip") as archive:
        archive.extractall(tmp_path / "elsewhere")
    return tmp_path / "elsewhere"


def command(folder: Path, *command_line: str, ends_with: int = 0) -> str:
    """Run a command beside the projects and return what it wrote."""
    done = subprocess.run(
        [sys.executable, "-m", "weakspot", *command_line],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=MAX_SECONDS,
        check=False,
    )
    assert done.returncode == ends_with, (
        f"{command_line}: {done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    )
    return done.stdout


def latest(facts: dict[str, Any]) -> dict[str, Any]:
    """Return what is known of the newest run."""
    return facts["runs"][-1]


def assert_same_evidence(record: Any, facts: dict[str, Any]) -> None:
    """Hold that a run has the slices, evidence and decisions that it had when the project was made."""
    assert [one.slice_id for one in record.slices] == [one["slice_id"] for one in facts["slices"]]
    assert [one.title for one in record.slices] == [one["title"] for one in facts["slices"]]
    assert [found.slice_id for found, _ in record.published()] == facts["published"]
    known = {one["slice_id"]: one for one in facts["slices"]}
    for entry in record.evidence:
        for name in ("n_inside", "failures_inside", "n_outside", "failures_outside", "n_tested"):
            assert getattr(entry, name) == known[entry.slice_id][name], (entry.slice_id, name)
        for name in ("p_value", "q_value", "gap"):
            if name in known[entry.slice_id]:
                assert getattr(entry, name) == pytest.approx(known[entry.slice_id][name], rel=1e-9)
        assert entry.verdict.value == known[entry.slice_id]["verdict"]
    assert [(one.slice_id, one.kind, one.by) for one in record.decisions] == [
        (one["slice_id"], one["kind"], one["by"]) for one in facts["decisions"]
    ]


def largest_overlap(folder: Path, record: weakspot.RunRecord) -> float:
    """Return how nearly some slice that is published now has the members of one that was (Jaccard)."""
    project = weakspot.Project.open(folder)
    earlier = project.run_record(latest(SHAPES)["run_id"])
    overlaps = [0.0]
    for now, _ in record.published():
        for before, _ in earlier.published():
            both = [
                _members(project, one, found) for one, found in ((record, now), (earlier, before))
            ]
            overlaps.append(len(both[0] & both[1]) / len(both[0] | both[1]))
    return max(overlaps)


def _members(project: weakspot.Project, record: weakspot.RunRecord, found: Any) -> set[int]:
    samples = project.samples(record)
    rows = samples.dataset.rows_of(weakspot.Split.VALIDATION)
    return set(found.members(samples, rows).tolist())


def test_open__moved_project__same_samples_runs_and_slices(unpacked):
    project = weakspot.Project.open(unpacked / "shapes")
    dataset = project.store.dataset()
    assert len(dataset) == SHAPES["dataset"]["n_samples"]
    assert list(dataset.class_names) == SHAPES["dataset"]["class_names"]
    assert project.store.runs.run_ids() == [run["run_id"] for run in SHAPES["runs"]]
    for run in SHAPES["runs"]:
        assert_same_evidence(project.run_record(run["run_id"]), run)
    repairs = project.run_record().repairs
    assert len(repairs) == len(latest(SHAPES)["repairs"])
    for repair, known in zip(repairs, latest(SHAPES)["repairs"], strict=True):
        assert list(repair.plan.slice_ids) == known["slice_ids"]
        for arm, figures in zip(repair.arms, known["arms"], strict=True):
            assert (arm.arm, arm.is_baseline, arm.n_trained) == (
                figures["arm"],
                figures["is_baseline"],
                figures["n_trained"],
            )
            measured = [[one.n_samples, one.right_before, one.right_after] for one in arm.changes]
            assert measured == [one[2:] for one in figures["changes"]]


def test_open__images_inside_a_table__found_where_it_was_unpacked(unpacked):
    project = weakspot.Project.open(unpacked / "packed")
    assert_same_evidence(project.run_record(), latest(PACKED))
    location = project.store.dataset().locations([0])[0]
    assert str(unpacked) in str(location)


def test_embed__after_reading_again__nothing_is_computed_anew(unpacked):
    project = weakspot.Project.open(unpacked / "shapes")
    summary = project.ingest()
    assert (summary.n_samples, summary.n_unlabelled) == (
        SHAPES["dataset"]["n_samples"],
        SHAPES["dataset"]["n_unlabelled"],
    )
    assert dict(summary.quarantined) == SHAPES["dataset"]["quarantined"]
    made = project.embed()
    assert made.n_new_embeddings == 0
    assert made.n_new_predictions == 0


def test_people__what_they_did__is_kept(unpacked):
    shapes = unpacked / "shapes"
    looks = [
        json.loads(line)
        for line in (shapes / "hypotheses.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert [one["phrase"] for one in looks] == [one["phrase"] for one in SHAPES["looks"]]
    edits = json.loads((shapes / "attribute_edits.json").read_text(encoding="utf-8"))["entries"]
    assert [one["sentence"] for one in edits] == [
        one["sentence"] for one in SHAPES["attribute_edits"]
    ]


def test_commands__moved_project__reports_repairs_runs_and_judges(unpacked):
    report = json.loads(command(unpacked, "report", "-p", "shapes", "--json"))
    assert report
    command(unpacked, "repair", "-p", "shapes", "--write-to", "repaired")
    assert (unpacked / "repaired" / "plan.json").exists()
    assert list((unpacked / "repaired" / "model").glob("*.onnx"))

    assert json.loads(command(unpacked, "run", "-p", "shapes", "--json"))
    record = weakspot.Project.open(unpacked / "shapes").run_record()
    assert record.run_id not in [run["run_id"] for run in SHAPES["runs"]]
    # Halves follow from the data now and no longer from the seed, so directions and words differ; whom they mean does not.
    assert largest_overlap(unpacked / "shapes", record) >= 0.5, (
        "a new run finds what the old one found"
    )
    assert any(repair.arms for repair in record.repairs)

    asked = json.loads(
        command(unpacked, "hypothesis", "-p", "shapes", "--class", "disc", "grassy discs", "--json")
    )
    assert asked
    policy = ("--policy", "shapes/policy.toml", "--baseline", "shapes/baseline.json")
    judged = json.loads(command(unpacked, "check", "-p", "shapes", *policy, "--json"))
    assert judged
    changed = command(
        unpacked,
        "counterfactual",
        "-p",
        "shapes",
        "--class",
        "disc",
        "-n",
        "4",
        "on grass",
        "green",
    )
    assert "on grass" in changed


class Visitor:
    """Somebody's browser."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        self._headers: dict[str, str] = {}

    def log_in(self, **entry: str) -> None:
        """Log in."""
        self._headers["X-CSRF-Token"] = self._json("/api/session", entry)["csrf_token"]

    def get(self, place: str, **query: object) -> Any:
        """Return what a page asks for."""
        return self._json(f"{place}?{urllib.parse.urlencode(query)}" if query else place)

    def content(self, place: str, data: bytes | None = None) -> bytes:
        """Return what the server answers."""
        headers = {**self._headers, "Content-Type": "application/json", "Origin": self._address}
        request = urllib.request.Request(f"{self._address}{place}", data=data, headers=headers)
        with self._opener.open(request, timeout=120) as answer:
            assert answer.status == 200
            return answer.read()

    def _json(self, place: str, body: object = None) -> Any:
        return json.loads(self.content(place, None if body is None else json.dumps(body).encode()))


@contextmanager
def serving(folder: Path) -> Iterator[tuple[str, str]]:
    """Start the server as a person would, and give its address and the owner's token."""
    line = [
        sys.executable,
        "-m",
        "weakspot",
        "serve",
        "-p",
        "shapes",
        "--port",
        "0",
        "--no-browser",
    ]
    environment = {
        name: value for name, value in os.environ.items() if name != "WEAKSPOT_TOKEN"
    } | {"PYTHONUNBUFFERED": "1"}
    server = subprocess.Popen(line, cwd=folder, stdout=subprocess.PIPE, text=True, env=environment)
    assert server.stdout is not None
    try:
        found = next((match for said in server.stdout if (match := ADDRESS.search(said))), None)
        assert found, f"the server ended with {server.wait(20)}"
        yield found[1], found[2]
    finally:
        server.send_signal(signal.SIGINT)
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait(10)
        server.stdout.close()


def test_serve__moved_project__pages_people_and_images(unpacked):
    command(unpacked, "ingest", "-p", "shapes")
    known = SHAPES["browser"]
    with serving(unpacked) as (address, token):
        owner = Visitor(address)
        assert b"<html" in owner.content("/").lower()
        owner.log_in(token=token)
        for place in (
            "overview",
            "runs",
            "classes",
            "attributes",
            "map",
            "repair/options",
            "repair/results",
            "jobs",
        ):
            assert owner.get(f"/api/{place}"), place
        shown = {one["slice_id"]: one["title"] for one in owner.get("/api/slices")["slices"]}
        assert shown == {one["slice_id"]: one["title"] for one in latest(SHAPES)["slices"]}
        for slice_id in latest(SHAPES)["published"]:
            assert owner.get(f"/api/slices/{slice_id}")
        assert owner.get("/api/attributes/edits")["version"] == len(SHAPES["attribute_edits"])
        assert owner.get("/api/generation/counterfactuals")["results"]
        (search,) = owner.get("/api/generation/searches")["results"]
        digest = search["baseline"]["digests"][0]
        assert owner.content(f"/api/generation/images/{digest}")[:2] == b"\xff\xd8"
        assert len(owner.get("/api/jobs")["jobs"]) == len(known["jobs"])
        said = owner.get("/api/classes/history", title="disc")["phrases"]
        assert {one["phrase"] for one in said} >= {
            one["phrase"] for one in known["phrases"] if not one["is_of_study"]
        }
        (study,) = owner.get("/api/studies")["studies"]
        assert study["title"] == known["studies"][0]["title"]
        people = owner.get(f"/api/studies/{study['study_id']}/people")["people"]
        assert [one["name"] for one in people] == [
            one["name"] for one in known["people"] if one["is_guest"]
        ]
        assert owner.content(f"/api/studies/{study['study_id']}/table.csv").count(b"\n") > 1
        tables = owner.get("/api/classes/samples", title="disc")["tables"]
        row = owner.get("/api/images", limit=1)["images"][0]["row"]
        assert owner.content(f"/api/images/{row}?tables={tables}&side=64")[:2] == b"\xff\xd8"

        olga = Visitor(address)
        olga.log_in(login=FACTS["owner"]["login"], password=FACTS["owner"]["password"])
        assert olga.get("/api/session")["person"]["name"] == "Olga"
