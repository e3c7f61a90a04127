"""The command line as a user types it: what is shown, and exit codes."""

import contextlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from weakspot import __version__
from weakspot.cli import lab
from weakspot.cli.main import COMMANDS, app, main
from weakspot.project import doctor


def _weakspot(*arguments, cwd="."):
    """Run the command line as a process would, without the seconds that starting one takes."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["weakspot", *map(str, arguments)]),
        mock.patch.dict(os.environ, {"COLUMNS": "200", "NO_COLOR": "1"}),
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return SimpleNamespace(
        returncode=ended.value.code or 0, stdout=out.getvalue(), stderr=err.getvalue()
    )


def _process(*arguments):
    command = [sys.executable, "-m", "weakspot", *map(str, arguments)]
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def _assert_clear_error(result, *parts):
    assert result.returncode == 2
    assert "Traceback" not in result.stderr
    for part in parts:
        assert part in result.stderr


def test_main__version():
    result = _process("--version")
    assert (result.returncode, result.stdout) == (0, f"weakspot {__version__}\n")


def test_main__every_command_has_help():
    for command in (app, lab.app):
        for one in get_command(command).commands.values():
            result = CliRunner().invoke(
                app, [*(["lab"] if command is lab.app else []), one.name, "--help"]
            )
            assert result.exit_code == 0
            assert "--help" in result.output


def test_main__help_lists_commands_by_topic_in_80_columns():
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).output
    topics = [line for line in shown.splitlines() if line.endswith(":") and line[0] != " "]
    assert topics[1:] == [f"{topic}:" for topic in (*COMMANDS, "Research")]
    assert "..." not in shown.split("Start:")[1]
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize(
    "name",
    [
        *(one.__name__.rstrip("_") for commands in COMMANDS.values() for one in commands),
        *(f"lab {name}" for name in ("refine", "adversarial", "collective", *lab.OF_THE_LAB)),
    ],
)
def test_help__of_every_command__fits_80_columns_and_ends_with_an_example(name):
    shown = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "80"}).output
    assert max(map(len, shown.splitlines())) <= 80
    last = " ".join(shown[shown.index("Example:") :].split())
    assert last.startswith(f"Example: weakspot {name}")


def test_main__quiet__shows_no_progress_wherever_it_stands(planted_project):
    # Failures are looked for anew each time; images are taken in once, by whichever test is the first.
    assert _weakspot("ingest", "-p", planted_project).returncode == 0
    loud = _process("discover", "-p", planted_project)
    assert loud.stderr
    for words in (("-q", "discover"), ("discover", "-q")):
        quiet = _process(*words, "-p", planted_project)
        assert quiet.returncode == 0
        assert quiet.stdout
        assert quiet.stderr == ""


def test_main__verbose_logs_the_traceback_of_an_error(tmp_path):
    quiet, loud = _process("run", "-p", tmp_path), _process("-v", "run", "-p", tmp_path)
    assert "Traceback" not in quiet.stderr
    assert "INFO weakspot.cli.terminal: The traceback of the error:" in loud.stderr
    assert loud.stderr.endswith(quiet.stderr)


BROKEN = 'sed = 1\n[discover]\nmethods = ["directions"]\nparameter = {}\n'


@pytest.mark.parametrize(
    ("settings", "arguments", "parts"),
    [
        ("", ("run",), ("There is no weakspot.toml here", "weakspot init")),
        (BROKEN, ("run",), ("1. discover.parameter:", "2. sed:")),
        ('[data]\nsource = "nowhere"\n', ("ingest",), ("nowhere",)),
        ("", ("init", "a.csv/project"), ("cannot be written",)),
        ("", ("lab", "align", "out"), ("nothing to learn from",)),
        ("", ("lab", "align", "out", "--embeddings", "v.npy"), ("nothing to learn from",)),
        ("", ("discovery",), ("No such command",)),
    ],
)
def test_main__bad_input_is_said_and_exits_with_2(tmp_path, settings, arguments, parts):
    (tmp_path / "a.csv").write_text("path,label\nx.png,a\n")
    if settings:
        (tmp_path / "weakspot.toml").write_text(settings)
    _assert_clear_error(_weakspot(*arguments, cwd=tmp_path), *parts)


def test_run__unknown_method(planted_project, tmp_path):
    text = (planted_project / "weakspot.toml").read_text()
    text = text.replace('"manifest.csv"', f'"{planted_project}/manifest.csv"')
    (tmp_path / "weakspot.toml").write_text(text + '[discover]\nmethods = ["direction"]\n')
    told = ("no discoverer called 'direction'", "directions")
    _assert_clear_error(_weakspot("run", "-p", tmp_path), *told)


def test_init__writes_settings_that_load(tmp_path):
    (tmp_path / "photos" / "cat").mkdir(parents=True)
    (tmp_path / "model.onnx").write_bytes(b"")
    first = _weakspot(
        "init", "project", "--data", "photos", "--classifier", "model.onnx", cwd=tmp_path
    )
    assert first.returncode == 0
    text = (tmp_path / "project" / "weakspot.toml").read_text()
    assert 'source = "../photos"' in text
    assert '"path" = "../model.onnx"' in text
    _assert_clear_error(_weakspot("init", "project", cwd=tmp_path), "already", "--force")
    assert _weakspot("init", "project", "--force", cwd=tmp_path).returncode == 0


def test_run__whole_loop_with_given_predictions(planted_project):
    result = _weakspot("run", "-p", planted_project, "--json")
    assert result.returncode == 0, result.stderr
    record = json.loads(result.stdout)
    confirmed = [item for item in record["evidence"] if item["verdict"] == "confirmed"]
    top = max(confirmed, key=lambda item: item["gap"])
    found = next(item for item in record["slices"] if item["class_name"] == "disc")
    assert found["names"][0]["contrast"] == "green"
    assert top["rate_inside"] > 0.8
    assert record["command"].startswith("weakspot run")
    stages = {"ingest", "embed", "discover", "describe", "verify", "repair"}
    assert {stage["stage"] for stage in record["stages"]} >= stages


def test_run__fifteen_lines_then_everything(planted_project):
    short = _weakspot("run", "-p", planted_project)
    lines = short.stdout.splitlines()
    assert len(lines) <= 15
    assert max(map(len, lines[:-2])) <= 80
    assert re.match(r"The classifier: \d+ % right on [\d,]+ validation ", lines[0])
    assert any(re.match(r"\d green discs - ", line) for line in lines)
    assert lines[-1].endswith(f"{planted_project.name}/report.html")
    told = [line.split(":")[0] for line in short.stderr.splitlines()]
    assert len(told) == len(set(told))
    full = _weakspot("run", "-p", planted_project, "-v", "--profile")
    long = full.stdout
    assert "tested slices confirmed" in long
    assert "against" in long
    assert re.search(r"Where the time went \(.* s in stages\):\n  [a-z]+ +\d", long)
    drawn = Path(re.search(r"Profile: (.*)", full.stderr)[1])
    assert drawn.name == "profile.svg"
    assert "discover" in drawn.read_text()


def test_run__exit_code_one_above_the_threshold(planted_project):
    assert _weakspot("verify", "-p", planted_project, "--fail-above", "0.99").returncode == 0
    _weakspot("run", "-p", planted_project)
    assert _weakspot("verify", "-p", planted_project, "--fail-above", "0.2").returncode == 1


def test_stages__one_by_one_give_the_same_answer_as_run(planted_project):
    whole = json.loads(_weakspot("run", "-p", planted_project, "--json").stdout)
    for command in ("ingest", "embed", "discover", "verify", "repair"):
        result = _weakspot(command, "-p", planted_project, "--json")
        assert result.returncode == 0, result.stderr
    single = json.loads(result.stdout)
    assert single["run_id"] != whole["run_id"]
    assert single["slices"] == whole["slices"]
    assert single["evidence"] == whole["evidence"]


def test_repair__says_why_there_is_none(planted_project):
    record = json.loads(_weakspot("run", "-p", planted_project, "--json").stdout)
    assert record["repairs"] == []
    assert any(
        "features under the classifier's last layer are not known" in note["note"]
        for note in record["notes"]
    )


def test_report__writes_three_files(planted_project):
    _weakspot("run", "-p", planted_project)
    result = _weakspot("report", "-p", planted_project, "--json")
    files = json.loads(result.stdout)
    assert sorted(files) == ["html", "json", "md"]
    html = Path(files["html"]).read_text()
    assert re.findall(r'(?:src|href)="(?!data:|#)([^"]+)"', html) == []
    assert "disc" in Path(files["md"]).read_text()


def test_doctor__offline_as_json(monkeypatch):
    monkeypatch.setattr(doctor, "import_problems", lambda modules: {})  # takes long: tried at home
    result = _weakspot("doctor", "--offline", "--json")
    findings = json.loads(result.stdout)
    assert {"python"} <= {finding["area"] for finding in findings["findings"]}
    assert "directions" in findings["registered"]["discoverers"]
