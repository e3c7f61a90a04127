import signal
import subprocess
import sys

import pytest
from tests.fruit_table import write_fruit_table
from typer.testing import CliRunner

from weakspot.cli.main import app


@pytest.fixture
def fruit(tmp_path):
    folder = write_fruit_table(tmp_path / "fruit")
    (folder / "policy.toml").write_text("[slice_accuracy]\nmin = 0.9\n")
    return folder


def _started(folder, *options):
    command = [sys.executable, "-m", "weakspot", "watch", "-p", str(folder), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _once(folder, *options):
    return CliRunner().invoke(app, ["watch", "-p", str(folder), "--once", *map(str, options)])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_watch__stops_cleanly_and_only_one_watches(fruit, number, code):
    watcher = _started(fruit, "--every", "0.2")
    assert "first look" in watcher.stdout.readline()
    assert "nothing changed" in watcher.stdout.readline()
    assert "Another watcher works on this project" in str(_once(fruit).exception)
    watcher.send_signal(number)
    _, said = watcher.communicate()
    assert watcher.returncode == code
    assert "Stopped." in said
    assert "Traceback" not in said


def test_watch__once_exits_with_1_if_the_policy_is_violated(fruit):
    for expected in ("first look", "nothing changed"):
        result = _once(fruit, "--policy", fruit / "policy.toml")
        assert result.exit_code == 1
        assert expected in result.output
        assert "The policy is violated" in result.output


def test_watch__a_wrong_policy_is_refused_before_anything_is_done(fruit):
    (fruit / "policy.toml").write_text("[slice_acc]\nmin = 0.9\n")
    result = _once(fruit, "--policy", fruit / "policy.toml")
    assert result.exception.exit_code == 2
    assert "did you mean slice_accuracy" in str(result.exception)
    assert not (fruit / ".weakspot").exists()
