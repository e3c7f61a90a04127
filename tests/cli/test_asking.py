import json

import pytest
import typer
from typer.testing import CliRunner

from weakspot.app.project import Project
from weakspot.cli.asking import register
from weakspot.core.errors import DataError


@pytest.fixture(scope="module")
def asked(planted_project):
    Project.open(planted_project).ingest()
    app = typer.Typer()
    register(app)
    app.callback()(lambda: None)
    return lambda *arguments: CliRunner().invoke(app, ["hypothesis", "-p", str(planted_project), *arguments])


def test_hypothesis__prints_both_halves_and_the_count(asked):
    result = asked("--class", "disc", "green", "dark")
    assert result.exit_code == 0, result.output
    text = result.stdout
    assert "disc: 'green'" in text
    assert "in sample" in text
    assert "held out" in text
    assert "good: Samples above the threshold fail more often" in text
    assert "2 different phrases have been put to these held-out samples" in text


def test_hypothesis__json(asked):
    result = asked("--class", "disc", "--json", "green")
    report = json.loads(result.stdout)
    (answer,) = report["answers"]
    assert answer["phrase"] == "green"
    assert answer["fit"] == "good"
    assert answer["confirmation"]["inside"]["value"] > 0.8
    assert report["n_looks"] >= 1


def test_hypothesis__unknown_class_is_bad_input(asked):
    result = asked("--class", "disk", "green")
    assert isinstance(result.exception, DataError)
    assert result.exception.exit_code == 2
    assert asked("--class", "disc").exit_code == 2
