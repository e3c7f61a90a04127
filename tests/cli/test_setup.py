import json

import pytest
import typer

from weakspot.cli.setup import doctor
from weakspot.project import doctor as machine
from weakspot.project.doctor import DoctorFinding
from weakspot.project.project import Project

FIX = "pip install 'weakspot[ray]'"


def _findings(*, is_optional):
    return (
        DoctorFinding(area="python", state="ok", found="CPython 3.11.7"),
        DoctorFinding(
            area="extra ray: ray",
            state="missing",
            found="not installed",
            fix=FIX,
            is_optional=is_optional,
        ),
    )


def test_doctor__brackets_of_an_install_command_are_kept(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr(machine, "examine_machine", lambda **_: _findings(is_optional=True))
    doctor(project=None, offline=True, verbose=True, as_json=False)
    shown = capsys.readouterr().out
    assert FIX in shown
    assert "missing (optional)" in shown


def test_doctor__exit_code_one_when_something_needed_is_missing(monkeypatch):
    monkeypatch.setattr(machine, "examine_machine", lambda **_: _findings(is_optional=False))
    with pytest.raises(typer.Exit) as stopped:
        doctor(project=None, offline=True, verbose=False, as_json=True)
    assert stopped.value.exit_code == 1


def test_doctor__a_verdict_first_and_little_more(capsys, monkeypatch):
    monkeypatch.setattr(machine, "examine_machine", lambda **_: _findings(is_optional=True))
    doctor(project=None, offline=True, verbose=False, as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "In order: this machine is ready.",
        "  Optional and not there: extra ray: ray; -v says how to get it.",
    ]


def test_doctor__what_is_wrong_with_a_project(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "examine_machine", lambda **_: ())
    rows = [f"{number},{'ab'[number % 2]},{'ba'[number % 2]},{number % 4}" for number in range(80)]
    (tmp_path / "t.csv").write_text("\n".join(["id,label,prediction,size", *rows]))
    Project.create(tmp_path / "p", data=str(tmp_path / "t.csv")).ingest()
    with pytest.raises(typer.Exit):
        doctor(project=tmp_path / "p", offline=True, verbose=False, as_json=False)
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "Not in order: class names in the wrong order."
    assert shown[1].startswith("  problem  class order: The class names are in the wrong order")
    with pytest.raises(typer.Exit):
        doctor(project=tmp_path / "p", offline=True, verbose=False, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == shown[0]
    assert told["checks"][0]["state"] == "problem"
