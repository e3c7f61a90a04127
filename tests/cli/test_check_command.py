import json

import pytest
from tests.fruit_table import write_fruit_table
from typer.testing import CliRunner

from weakspot.cli.main import app
from weakspot.core.errors import ConfigError, StoreError


@pytest.fixture(scope="module")
def fruit(tmp_path_factory):
    """A project without pictures whose green apples are mostly taken for pears, with policies beside it."""
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
    result = _run("-p", fruit, "--policy", fruit / "strict.toml", "--baseline", baseline, *options, "--json")
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
