import csv
import json

import pytest
import typer
from typer.testing import CliRunner

from weakspot.app.project import Project
from weakspot.cli.nearest_command import COLUMNS, register
from weakspot.core.errors import ConfigError, DataError


@pytest.fixture(scope="module")
def asked(planted_project):
    Project.open(planted_project).ingest()
    app = typer.Typer()
    register(app)
    app.callback()(lambda: None)
    return lambda *arguments: CliRunner().invoke(app, ["nearest", "-p", str(planted_project), *arguments])


def test_nearest__says_that_it_is_no_proof(asked):
    result = asked("green", "--top", "5", "--split", "validation", "--class", "disc")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines[:5]] == ["1", "2", "3", "4", "5"]
    assert all("validation: disc -> " in line for line in lines[:5])
    assert "FAILED" in lines[0]
    assert "of the confirmation half are not shown" in result.stdout
    assert "; of its others " in result.stdout
    assert "; of its others " not in asked("green", "--above", "-1").stdout
    assert "not proof" in result.stdout
    assert "weakspot hypothesis --class" in result.stdout


def test_nearest__json_and_csv(asked, tmp_path):
    result = asked("green", "--top", "4", "--above", "-1", "--json", "--csv", str(tmp_path / "near.csv"))
    report = json.loads(result.stdout)
    assert len(report["pictures"]) == 4
    assert report["n_above"] == report["n_compared"]
    with (tmp_path / "near.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert tuple(rows[0]) == COLUMNS
    assert [row["sample_id"] for row in rows] == [one["sample_id"] for one in report["pictures"]]


def test_nearest__approximate_says_that_it_may_miss(asked):
    assert "may have missed some" in asked("green", "--index", "approximate").stdout


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((), ConfigError),
        (("green", "--like", "x"), ConfigError),
        (("green", "--index", "fast"), ConfigError),
        (("green", "--top", "0"), ConfigError),
        (("green", "--above", "2"), ConfigError),
        (("green", "--split", "valid"), ConfigError),
        (("green", "--class", "disk"), DataError),
        (("--like", "no such file.png"), DataError),
        (("green", "--csv", "no such folder/near.csv"), ConfigError),
    ],
)
def test_nearest__bad_input(asked, arguments, error):
    result = asked(*arguments)
    assert isinstance(result.exception, error)
    assert result.exception.exit_code == 2


def test_nearest__bad_option(asked):
    assert asked("green", "--top", "many").exit_code == 2
