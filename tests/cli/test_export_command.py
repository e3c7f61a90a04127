import json

import pytest
from typer.testing import CliRunner

from weakspot.cli.main import app
from weakspot.core.errors import WeakspotError
from weakspot.web import static_export
from weakspot.web.static_export import ExportSummary


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """What the command asks for, without doing it."""
    found = []

    def export(request, *, say):
        found.append(request)
        say("Writing pictures")
        return ExportSummary(
            index=request.folder / "index.html", n_answers=3, n_pictures=2, n_bytes=2_500_000, notes=("Left out: much.",)
        )

    monkeypatch.setattr(static_export, "export_static", export)
    return found


def test_export__says_what_was_left_out_and_what_to_open(asked, tmp_path):
    result = CliRunner().invoke(app, ["export", "-p", str(tmp_path), "--static", str(tmp_path / "out"), "--most-samples", "7"])
    assert result.exit_code == 0, result.output
    (request,) = asked
    assert (request.project, request.folder, request.most_samples, request.run_id) == (tmp_path, tmp_path / "out", 7, None)
    assert "Left out: much." in result.output
    assert "2.5 MB, 2 pictures" in result.output
    assert str(tmp_path / "out" / "index.html") in result.output.replace("\n", "")


def test_export__as_json(asked, tmp_path):
    result = CliRunner().invoke(app, ["export", "--static", str(tmp_path / "out"), "--run", "r1", "--force", "--json"])
    content = json.loads(result.stdout)
    assert content["n_pictures"] == 2
    assert asked[0].run_id == "r1"
    assert asked[0].is_forced


def test_export__no_folder_named__refused():
    assert CliRunner().invoke(app, ["export"]).exit_code != 0


def test_export__folder_without_project__says_so(tmp_path):
    result = CliRunner().invoke(app, ["export", "-p", str(tmp_path), "--static", str(tmp_path / "out")])
    assert result.exit_code != 0
    assert isinstance(result.exception, WeakspotError | SystemExit)
    assert not (tmp_path / "out").exists()
