"""Make what pictures of the pages are taken of: the demo, the repaired classifier beside it, and what people said and did.

Everything is done as a person or a script would do it: by commands, and by the routes of a served project with its token.
"""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

DEMO, REPAIRED = "weakspot-demo", "repaired"
MANIFEST, TOML = "manifest.csv", "weakspot.toml"
PATIENCE_SECONDS, STEP_SECONDS = 600, 0.5
MARKS: tuple[tuple[dict[str, Any], int], ...] = (
    ({"kind": "label", "labels": ["pear"]}, 3),
    ({"kind": "tag", "text": "ask the grower"}, 6),
    ({"kind": "note", "text": "two kinds of fruit in one image"}, 1),
)


def make_projects(folder: Path) -> tuple[Path, Path]:
    """Run the demo in a folder and a second project with the repaired classifier on the same photographs, unless they are there."""
    demo, repaired = folder / DEMO, folder / REPAIRED
    if not (demo / TOML).exists():
        call("demo", "--folder", demo)
    if not (repaired / TOML).exists():
        call("repair", "-p", demo, "--write-to", folder / "written")
        repaired.mkdir()
        (model,) = (folder / "written" / "model").glob("*.onnx")
        shutil.copy(model, repaired / "fruit.onnx")
        shutil.copy(demo / TOML, repaired)
        # The photographs lie beside the demo's table.
        lines = (demo / MANIFEST).read_text().replace("photos/", f"../{DEMO}/photos/")
        (repaired / MANIFEST).write_text(lines)
        call("run", "-p", repaired)
    return demo, repaired


def call(*command_line: object) -> None:
    """Run a command of weakspot to its end."""
    subprocess.run([sys.executable, "-m", "weakspot", *map(str, command_line)], check=True)


class Script:
    """Someone who uses the routes of a served project with its token."""

    def __init__(self, address: str) -> None:
        self.root, _, self.token = address.partition("#token=")

    def ask(self, place: str, body: Mapping[str, Any] | None = None) -> Any:
        """Return what a route answers; with a body, what it does."""
        content = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        with urlopen(Request(f"{self.root}api/{place}", content, headers)) as answer:
            return json.load(answer)

    def work(self, kind: str, **arguments: Any) -> None:
        """Start work and wait until it is done."""
        job = self.ask("jobs", {"kind": kind, "arguments": arguments})["job_id"]
        for _ in range(round(PATIENCE_SECONDS / STEP_SECONDS)):
            (found,) = (one for one in self.ask("jobs")["jobs"] if one["job_id"] == job)
            if found["state"] == "done":
                return
            if found["finished"]:
                raise SystemExit(f"{kind} {found['state']}: {found['message']}")
            time.sleep(STEP_SECONDS)
        raise SystemExit(f"{kind} took too long")


def wait_until_open(script: Script) -> None:
    """Wait until the project is opened, which goes on behind the first answers."""
    for _ in range(round(PATIENCE_SECONDS / STEP_SECONDS)):
        if script.ask("health")["state"] == "ready":
            return
        time.sleep(STEP_SECONDS)
    raise SystemExit("the project did not open")


def fill_project(address: str) -> str:
    """Assign attributes, compare, repair once more, generate, mark, accept words and hold a study; return the study's id."""
    script = Script(address)
    wait_until_open(script)
    known = script.ask("studies")["studies"]
    if known:
        return str(known[0]["study_id"])
    script.work("attributes")
    script.work("compare", other=REPAIRED)
    script.work("map")
    script.work("counterfactual", class_name="apple", captions=["green", "on grass"], n_each=12)
    script.work("repair", strategy="up-weight")
    kept = script.ask("repair/results")["kept"]
    best = max(kept, key=lambda one: one["right_after"])
    if not best["is_current"]:
        script.ask("repair/current", {"repair_id": best["repair_id"]})
    script.ask("classes/accept", {"title": "apple", "phrase": "in a supermarket"})
    shown = script.ask("images?result=wrong&order=loss&limit=10")
    rows = [one["row"] for one in shown["images"]]
    for said, count in MARKS:
        chosen, rows = rows[:count], rows[count:]
        script.ask("marks", {**said, "rows": chosen, "tables": shown["tables"]})
    return hold_study(script)


def hold_study(script: Script) -> str:
    """Begin a study and say two things in it."""
    asked = {
        "title": "What do the failures have in common?",
        "classes": ["apple", "pear"],
        "instructions": "Complete the sentence for both classes. Take ten minutes each.",
        "options": {"shows_suggestions": False},
    }
    study = str(script.ask("studies", asked)["study_id"])
    for phrase in ("green", "in a crate"):
        said = {"title": "apple", "phrase": phrase, "study": study, "is_submitted": True}
        script.ask("classes/phrase", {**said, "source": "own"})
    return study
