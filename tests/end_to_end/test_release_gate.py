"""The example of a release gate, run for real: a worse model fails it and a repaired one passes."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from typer.main import get_command

from weakspot.cli.main import app

EXAMPLE = Path(__file__).parent.parent.parent / "examples/release_gate"
CHECK = ("check", "--policy", "policy.toml")


def _weakspot(folder, *arguments):
    command = [sys.executable, "-m", "weakspot", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["github-actions.yml", "gitlab-ci.yml"])
def test_release_gate__build_files_call_the_command_as_it_is(name):
    line = next(
        line
        for line in (EXAMPLE / "ci" / name).read_text().splitlines()
        if "weakspot check" in line
    )
    known = {option for one in get_command(app).commands["check"].params for option in one.opts}
    used = {part for part in line.split("weakspot check")[1].split() if part.startswith("--")}
    assert {"--policy", "--baseline", "--junit"} <= used <= known


def _use(folder, model):
    shutil.copyfile(folder / model, folder / "models/current.onnx")


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """The example in a folder of its own, with data, models and the baseline of the model in use."""
    folder = tmp_path_factory.mktemp("gate") / "repository"
    shutil.copytree(
        EXAMPLE, folder, ignore=shutil.ignore_patterns(".weakspot", "data", "models", "__pycache__")
    )
    subprocess.run([sys.executable, "make_models.py"], cwd=folder, check=True, capture_output=True)
    _use(folder, "models/in_use.onnx")
    first = _weakspot(folder, *CHECK, "--write-baseline", "baseline.json")
    assert first.returncode == 0, first.stdout + first.stderr
    return folder


def test_release_gate__the_baseline_names_no_folder_and_no_machine(repository):
    content = (repository / "baseline.json").read_text()
    assert str(repository) not in content
    assert "platform" not in content
    assert len(content) < 40_000


def test_release_gate__a_worse_model_fails_and_a_repaired_one_passes(repository):
    _use(repository, "models/candidate.onnx")
    files = ("--junit", "gate.xml", "--sarif", "gate.sarif", "--markdown", "gate.md")
    worse = _weakspot(repository, *CHECK, "--baseline", "baseline.json", *files)
    assert worse.returncode == 1, worse.stdout + worse.stderr
    assert "The policy is violated" in worse.stdout
    _outputs_say_why(repository)
    repaired = _weakspot(repository, "repair", "--write-to", "repaired")
    assert repaired.returncode == 0, repaired.stderr
    _use(repository, "repaired/model/current_repaired.onnx")
    better = _weakspot(repository, *CHECK, "--baseline", "baseline.json")
    assert better.returncode == 0, better.stdout + better.stderr
    plain = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_model.py"]
    assert subprocess.run(plain, cwd=repository, capture_output=True, check=False).returncode == 0


def _outputs_say_why(repository):
    suites = ET.parse(repository / "gate.xml").getroot()
    failed = {
        (case.get("classname"), case.get("name"))
        for case in suites.iter("testcase")
        if case.find("failure") is not None
    }
    expected = {
        ("weakspot.slice_accuracy", "apple: green"),
        ("weakspot.slice_accuracy", "green apples"),
        ("weakspot.new_slices", "apple: green"),
        ("weakspot.regressions", "green apples"),
    }
    assert expected <= failed
    results = json.loads((repository / "gate.sarif").read_text())["runs"][0]["results"]
    assert len(results) == len(failed)
    assert any("“apple: green” is new" in result["message"]["text"] for result in results)
    comment = (repository / "gate.md").read_text()
    assert "❌ weakspot: The policy is violated" in comment
    assert "| new\\_slices | apple: green |" in comment
