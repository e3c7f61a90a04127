import json
import signal
import subprocess
import sys

import pytest
from tests.build import write_fruit_table
from typer.testing import CliRunner

from weakspot.cli.main import app
from weakspot.core.errors import ConfigError, StoreError


@pytest.fixture(scope="module")
def fruit(tmp_path_factory):
    """A project without images whose green apples are mostly taken for pears, with policies beside it."""
    folder = write_fruit_table(tmp_path_factory.mktemp("check") / "fruit")
    (folder / "strict.toml").write_text("[slice_accuracy]\nmin = 0.9\n[new_slices]\nmax = 0\n")
    (folder / "mild.toml").write_text("[overall_accuracy]\nmin = 0.5\n")
    return folder


def _run(*arguments):
    return CliRunner().invoke(app, ["check", *map(str, arguments)])


def test_check__a_kept_policy_exits_with_0_and_says_so(fruit):
    result = _run("-p", fruit, "--policy", fruit / "mild.toml")
    assert result.exit_code == 0
    assert "The policy is kept: 1 checks judged." in result.output


def test_check__a_violated_policy_exits_with_1_and_writes_its_files(fruit, tmp_path):
    files = {name: tmp_path / f"out/gate.{name}" for name in ("junit", "sarif", "markdown")}
    options = [part for name, path in files.items() for part in (f"--{name}", path)]
    baseline = tmp_path / "baseline.json"
    first = _run("-p", fruit, "--policy", fruit / "strict.toml", "--write-baseline", baseline)
    assert first.exit_code == 1
    result = _run(
        "-p", fruit, "--policy", fruit / "strict.toml", "--baseline", baseline, *options, "--json"
    )
    assert result.exit_code == 1
    verdicts = {entry["rule"]: entry["verdict"] for entry in json.loads(result.stdout)["entries"]}
    assert verdicts == {"slice_accuracy": "violated", "new_slices": "kept"}
    assert all(path.read_text() for path in files.values())


def test_check__a_baseline_can_be_written_without_a_policy(fruit, tmp_path):
    result = _run("-p", fruit, "--write-baseline", tmp_path / "baseline.json")
    assert result.exit_code == 0
    assert (tmp_path / "baseline.json").stat().st_size < 20_000


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ([], ConfigError, "no policy"),
        (["--policy", "none.toml"], ConfigError, "no policy file"),
        (["--policy", "strict.toml"], ConfigError, "compares with a baseline"),
        (["--policy", "strict.toml", "--baseline", "none.json"], StoreError, "cannot be read"),
        (["--policy", "mild.toml", "--run", "nobody"], StoreError, "no run 'nobody'"),
        (["--policy", "mild.toml", "--junit", "mild.toml/x.xml"], StoreError, "cannot be written"),
    ],
)
def test_check__bad_input_is_an_error_of_code_2(fruit, options, error, said):
    named = [fruit / part if "." in part else part for part in options]
    result = _run("-p", fruit, *named)
    assert isinstance(result.exception, error)
    assert said in str(result.exception)
    assert result.exception.exit_code == 2


@pytest.fixture
def watched(tmp_path):
    folder = write_fruit_table(tmp_path / "fruit")
    (folder / "policy.toml").write_text("[slice_accuracy]\nmin = 0.9\n")
    return folder


def _start_in_background(folder, *options):
    """Start a watcher as a shell starts a command with `&`: SIGINT is ignored, and a child inherits that."""
    command = [sys.executable, "-m", "weakspot", "watch", "-p", str(folder), *options]
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)


def _once(folder, *options):
    return CliRunner().invoke(app, ["watch", "-p", str(folder), "--once", *map(str, options)])


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_watch__stops_cleanly_and_only_one_watches(watched, number, code):
    watcher = _start_in_background(watched, "--every", "0.2")
    assert "first look" in watcher.stdout.readline()
    assert "nothing changed" in watcher.stdout.readline()
    assert "Another watcher works on this project" in str(_once(watched).exception)
    watcher.send_signal(number)
    _, shown = watcher.communicate(timeout=60)
    assert watcher.returncode == code
    assert "Stopped." in shown
    assert "Traceback" not in shown


def test_watch__once_exits_with_1_if_the_policy_is_violated(watched):
    for expected in ("first look", "nothing changed"):
        result = _once(watched, "--policy", watched / "policy.toml")
        assert result.exit_code == 1
        assert expected in result.output
        assert "The policy is violated" in result.output


def test_watch__a_wrong_policy_is_refused_before_anything_is_done(watched):
    (watched / "policy.toml").write_text("[slice_acc]\nmin = 0.9\n")
    result = _once(watched, "--policy", watched / "policy.toml")
    assert result.exception.exit_code == 2
    assert "did you mean slice_accuracy" in str(result.exception)
    assert not (watched / ".weakspot").exists()
