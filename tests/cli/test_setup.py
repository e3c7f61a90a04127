import pytest
import typer

from weakspot.cli.setup import doctor
from weakspot.project import doctor as machine
from weakspot.project.doctor import DoctorFinding

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
    doctor(project=None, offline=True, as_json=False)
    shown = capsys.readouterr().out
    assert FIX in shown
    assert "missing (optional)" in shown


def test_doctor__exit_code_one_when_something_needed_is_missing(monkeypatch):
    monkeypatch.setattr(machine, "examine_machine", lambda **_: _findings(is_optional=False))
    with pytest.raises(typer.Exit) as stopped:
        doctor(project=None, offline=True, as_json=True)
    assert stopped.value.exit_code == 1
