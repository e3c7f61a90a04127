import csv
import json
import re

import pytest
from typer.testing import CliRunner

from weakspot.cli.ask import COLUMNS
from weakspot.cli.main import app
from weakspot.core.errors import ConfigError, DataError
from weakspot.project.project import Project


@pytest.fixture(scope="module")
def ask(planted_project):
    Project.open(planted_project).ingest()
    return lambda command, *arguments: CliRunner().invoke(
        app, [command, "-p", str(planted_project), *arguments]
    )


def test_ask__prints_both_halves_and_the_count(ask):
    result = ask("ask", "--class", "disc", "green", "dark")
    assert result.exit_code == 0, result.output
    text = result.stdout
    assert "disc: 'green'" in text
    assert "in sample" in text
    assert "held out" in text
    assert "good: Samples above the threshold fail more often" in text
    assert re.search(r"asked of these \d+ samples; the next may spend [\d.]+ % of the error", text)
    assert "fresh samples restore the full level." in text


def test_ask__json(ask):
    result = ask("ask", "--json", "green discs")
    report = json.loads(result.stdout)
    (answer,) = report["answers"]
    assert answer["phrase"] == "green discs"
    assert answer["class_name"] == "disc"
    assert answer["fit"] == "good"
    assert answer["confirmation"]["inside"]["value"] > 0.8
    assert report["n_looks"] >= 1


def test_ask__words_that_name_no_class__says_which_there_are(ask):
    result = ask("ask", "green")
    assert isinstance(result.exception, ConfigError)
    assert "--class NAME, one of disc" in str(result.exception)


def test_ask__unknown_class_is_bad_input(ask):
    result = ask("ask", "--class", "disk", "green")
    assert isinstance(result.exception, DataError)
    assert result.exception.exit_code == 2
    assert ask("ask", "--class", "disc").exit_code == 2


def test_nearest__says_that_it_is_no_proof(ask):
    result = ask("nearest", "green", "--top", "5", "--split", "validation", "--class", "disc")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines[:5]] == ["1", "2", "3", "4", "5"]
    assert all("validation: disc -> " in line for line in lines[:5])
    assert "FAILED" in lines[0]
    assert "of the confirmation half are not shown" in result.stdout
    assert "; of its others " in result.stdout
    assert "; of its others " not in ask("nearest", "green", "--above", "-1").stdout
    assert "not proof" in result.stdout
    assert "weakspot ask --class" in result.stdout


def test_nearest__json_and_csv(ask, tmp_path):
    result = ask(
        "nearest",
        "green",
        "--top",
        "4",
        "--above",
        "-1",
        "--json",
        "--csv",
        str(tmp_path / "near.csv"),
    )
    report = json.loads(result.stdout)
    assert len(report["images"]) == 4
    assert report["n_above"] == report["n_compared"]
    with (tmp_path / "near.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert tuple(rows[0]) == COLUMNS
    assert [row["sample_id"] for row in rows] == [one["sample_id"] for one in report["images"]]


def test_nearest__approximate_says_that_it_may_miss(ask):
    assert "may have missed some" in ask("nearest", "green", "--index", "approximate").stdout


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
def test_nearest__bad_input(ask, arguments, error):
    result = ask("nearest", *arguments)
    assert isinstance(result.exception, error)
    assert result.exception.exit_code == 2


def test_nearest__bad_option(ask):
    assert ask("nearest", "green", "--top", "many").exit_code == 2
