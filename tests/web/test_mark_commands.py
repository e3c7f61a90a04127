"""Marks leave and come back by the command line."""

import shutil

import pytest
from typer.testing import CliRunner

from weakspot.cli.main import app
from weakspot.core.errors import WeakspotError


@pytest.fixture
def marked(owner, own_folder):
    page = owner.get("/api/images", params={"label": "disc", "result": "wrong", "limit": 2}).json()
    body = {"rows": [one["row"] for one in page["images"]], "tables": page["tables"]}
    owner.post("/api/marks", json={**body, "kind": "label", "labels": ["square"]})
    return own_folder, [one["name"] for one in page["images"]]


def _run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


def test_export_marks__csv_and_back__the_same_marks(owner, marked, tmp_path):
    folder, names = marked
    out = _run("export", "--marks", "--to", "csv", "--out", tmp_path / "out", "-p", folder)
    assert out.exit_code == 0, out.output
    table = tmp_path / "out" / "marks.csv"
    assert all(name in table.read_text() for name in names)
    owner.post("/api/marks/removal", json={"query": {"mark": "any"}})
    back = _run("import", table, "--from", "csv", "--marks", "-p", folder, "--json")
    assert back.exit_code == 0, back.output
    assert '"n_marked": 2' in back.output
    assert owner.get("/api/images", params={"mark": "label"}).json()["total"] == 2


def test_export_marks__cvat__only_marked_images(marked, tmp_path):
    folder, names = marked
    out = _run("export", "--marks", "--to", "cvat", "--out", tmp_path / "cvat", "-p", folder)
    assert out.exit_code == 0, out.output
    assert len(list((tmp_path / "cvat" / "images").iterdir())) == len(names)


def test_commands__unclear_or_unknown__refused(own_folder, tmp_path):
    table = tmp_path / "labels.csv"
    shutil.copy(own_folder / "weakspot.toml", table)
    for arguments in (
        ("import", table, "--from", "csv", "-p", own_folder),
        ("import", table, "--from", "csv", "--marks", "--out", table, "-p", own_folder),
        ("import", table, "--from", "horse", "--marks", "-p", own_folder),
        ("import", tmp_path / "none", "--from", "csv", "--marks", "-p", own_folder),
        ("import", table, "--from", "csv", "--marks", "-p", own_folder),
        ("export", "--marks", "--to", "horse", "--out", tmp_path / "o", "-p", own_folder),
    ):
        found = _run(*arguments)
        assert isinstance(found.exception, WeakspotError), (arguments, found.output)
