import json

import pytest
from tests.build import planted_project
from typer.testing import CliRunner

from weakspot.cli.main import app
from weakspot.core.errors import ConfigError

HEAVY = (
    "ingest",
    "embed",
    "discover",
    "verify",
    "run",
    "repair",
    "generate",
    "search",
    "counterfactual",
    "lab decode",
    "lab refine",
    "lab adversarial",
    "lab sweep",
)


def ran(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.parametrize("command", HEAVY)
def test_engine__every_command_with_heavy_work_has_the_option(command):
    assert "--engine" in ran(*command.split(), "--help").output


def test_engine__takes_the_place_of_the_configured_one(tmp_path):
    folder = planted_project(
        tmp_path, 240, more='[engine]\nname = "local"\noptions = {n_workers = 3}\n'
    ).folder
    found = json.loads(ran("discover", "-p", folder, "--engine", "processes", "--json").stdout)
    assert found["settings"]["engine"] == {
        "name": "processes",
        "options": {},
        "provider": "auto",
    }
    again = json.loads(ran("embed", "-p", folder, "--engine", "local", "--json").stdout)
    assert (again["n_embeddings"], again["n_new_embeddings"], again["n_new_predictions"]) == (
        240,
        0,
        0,
    )


def test_engine__unknown_name(tmp_path):
    folder = planted_project(tmp_path, 240).folder
    with pytest.raises(ConfigError, match="spark") as caught:
        ran("embed", "-p", folder, "--engine", "spark")
    assert "local" in str(caught.value)


@pytest.mark.parametrize("command", ["ingest", "embed", "discover", "run", "demo"])
def test_loops__are_compiled_beside_from_the_first_command_on(command, tmp_path, monkeypatch):
    class BegunError(Exception):
        pass

    def begin(progress):
        progress("compile", 0, None)
        raise BegunError

    monkeypatch.setattr("weakspot.project.warm_up.begin_compiling", begin)
    place = ("--folder", tmp_path / "demo") if command == "demo" else ("-p", tmp_path)
    with pytest.raises(BegunError):
        ran(command, *place)
