import os
import sys
from pathlib import Path

import pytest

from weakspot.core.errors import UnavailableError
from weakspot.models import packages
from weakspot.models.packages import (
    download_wheel,
    index_answers,
    pip_command,
    summarise,
)


@pytest.fixture
def no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)


def hide_pip(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    found = packages.importlib.util.find_spec
    monkeypatch.setattr(
        packages.importlib.util,
        "find_spec",
        lambda name: None if name in names else found(name),
    )


def test_pip_command__of_this_environment():
    assert pip_command() == (sys.executable, "-m", "pip")


def test_pip_command__the_one_that_comes_with_python(monkeypatch):
    hide_pip(monkeypatch, "pip")
    command = pip_command()
    assert command is not None
    assert command[0] == sys.executable
    assert Path(command[1]).parent.name.startswith("pip-")


def test_pip_command__the_one_on_the_path_or_none(monkeypatch, tmp_path):
    hide_pip(monkeypatch, "pip", "ensurepip")
    program = tmp_path / "pip3"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert pip_command() == (str(program),)
    program.unlink()
    assert pip_command() is None


def test_download_wheel__without_any_pip(monkeypatch, tmp_path):
    hide_pip(monkeypatch, "pip", "ensurepip")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match="there is no pip.*python -m ensurepip"):
        download_wheel("thing==1", folder=tmp_path)


def test_download_wheel__too_slow(no_index, tmp_path):
    with pytest.raises(
        UnavailableError, match="did not finish downloading thing==1 in 0.01 seconds"
    ):
        download_wheel("thing==1", folder=tmp_path, timeout_seconds=0.01)


def test_index_answers__says_what_is_wrong(no_index):
    assert "No matching distribution found for weakspot-nothing" in str(
        index_answers("weakspot-nothing", timeout_seconds=60)
    )


def test_index_answers__too_slow(no_index):
    assert index_answers("thing", timeout_seconds=0.01) == "no answer in 0.01 seconds"


def test_summarise__errors_without_passwords():
    log = "WARNING: Retrying\nERROR: Could not reach https://me:secret@index.example/simple\nERROR: none found\nERROR: none found\n"
    assert summarise(log) == "Could not reach https://index.example/simple none found"


def test_summarise__last_line_when_there_is_no_error():
    assert summarise("first\nlast\n\n") == "last"
    assert summarise("") == "no reason given"
