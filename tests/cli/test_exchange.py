import csv
import json

import pytest
from tests.data.ingest.boxed_data import write_coco
from typer.testing import CliRunner

from weakspot.cli.main import app
from weakspot.core.errors import ConfigError, WeakspotError
from weakspot.tools.exchange import EXPORTS, IMPORTS
from weakspot.web import static as static_export
from weakspot.web.static import ExportSummary


def _invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def boxes(tmp_path):
    """A project over three boxes, ingested and nothing more."""
    write_coco(tmp_path)
    (tmp_path / "weakspot.toml").write_text(
        '[data]\nsource = "annotations/instances_val2017.json"\n'
    )
    assert _invoke("ingest", "-p", tmp_path).exit_code == 0
    return tmp_path


def test_export__to_another_tool_and_back(boxes):
    result = _invoke("export", "-p", boxes, "--to", "fiftyone", "--out", boxes / "out", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["files"][0] == str(boxes / "out" / "metadata.json")
    assert "from_dir" in told["sentence"]
    result = _invoke(
        "import", "--from", "fiftyone", boxes / "out", "--out", boxes / "manifest.csv", "--json"
    )
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["files"] == [str(boxes / "manifest.csv")]
    with (boxes / "manifest.csv").open(newline="") as stream:
        assert [line["label"] for line in csv.DictReader(stream)] == ["disc", "square", "disc"]


def test_export__says_what_was_written(boxes):
    result = _invoke("export", "-p", boxes, "--to", "coco", "--out", boxes / "out")
    assert result.exit_code == 0, result.output
    assert "instances.json" in result.output
    assert "3 boxes. Load it with" in result.output.replace("\n", " ")


@pytest.mark.parametrize(
    "options",
    [
        ["--static", "a", "--to", "coco", "--out", "b"],
        ["--static", "a", "--out", "b"],
        ["--to", "coco"],
        ["--out", "b"],
        [],
    ],
)
def test_export__unclear__names_both_ways_and_all_tools(boxes, options):
    result = _invoke("export", "-p", boxes, *options)
    assert isinstance(result.exception, ConfigError)
    assert all(name in result.exception.fix for name in ("--static FOLDER", *EXPORTS))


def test_export__unknown_tool__lists_all(boxes):
    result = _invoke("export", "-p", boxes, "--to", "fiftytwo", "--out", boxes / "out")
    assert isinstance(result.exception, ConfigError)
    assert all(name in result.exception.fix for name in EXPORTS)
    assert not (boxes / "out").exists()


def test_import__unknown_tool_or_nothing_there(tmp_path):
    result = _invoke("import", "--from", "fiftytwo", tmp_path, "--out", tmp_path / "a.csv")
    assert isinstance(result.exception, ConfigError)
    assert all(name in result.exception.fix for name in IMPORTS)
    result = _invoke("import", "--from", "cvat", tmp_path / "gone.xml", "--out", tmp_path / "a.csv")
    assert isinstance(result.exception, ConfigError)
    assert result.exception.where == str(tmp_path / "gone.xml")


def test_help__names_every_tool():
    for command, table in (("export", EXPORTS), ("import", IMPORTS)):
        shown = " ".join(_invoke(command, "--help").output.replace("│", " ").split())
        assert all(name in shown for name in table), shown


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """What the command asks for, without doing it."""
    requests = []

    def export(request, *, say):
        requests.append(request)
        say("Writing images")
        return ExportSummary(
            index=request.folder / "index.html",
            n_answers=3,
            n_images=2,
            n_bytes=2_500_000,
            notes=("Left out: much.",),
        )

    monkeypatch.setattr(static_export, "export_static", export)
    return requests


def test_export_static__says_what_was_left_out_and_what_to_open(asked, tmp_path):
    result = CliRunner().invoke(
        app,
        ["export", "-p", str(tmp_path), "--static", str(tmp_path / "out"), "--most-samples", "7"],
    )
    assert result.exit_code == 0, result.output
    (request,) = asked
    assert (request.project, request.folder, request.most_samples, request.run_id) == (
        tmp_path,
        tmp_path / "out",
        7,
        None,
    )
    assert "Left out: much." in result.output
    assert "2.5 MB, 2 images" in result.output
    assert str(tmp_path / "out" / "index.html") in result.output.replace("\n", "")


def test_export_static__as_json(asked, tmp_path):
    result = CliRunner().invoke(
        app, ["export", "--static", str(tmp_path / "out"), "--run", "r1", "--force", "--json"]
    )
    content = json.loads(result.stdout)
    assert content["n_images"] == 2
    assert asked[0].run_id == "r1"
    assert asked[0].is_forced


def test_export_static__folder_without_project__says_so(tmp_path):
    result = CliRunner().invoke(
        app, ["export", "-p", str(tmp_path), "--static", str(tmp_path / "out")]
    )
    assert result.exit_code != 0
    assert isinstance(result.exception, WeakspotError | SystemExit)
    assert not (tmp_path / "out").exists()
