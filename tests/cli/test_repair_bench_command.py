import json

from typer.testing import CliRunner

from weakspot.cli.main import app
from weakspot.core.errors import ConfigError


def test_bench_repair__page_and_files(tmp_path):
    words = ["bench-repair", "worlds", "--worlds", "1", "--samples", "600", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "| slice-balanced |" in result.output
    assert json.loads((tmp_path / "worlds.json").read_text())["command"] == (
        "weakspot bench-repair worlds --worlds 1 --samples 600 --seed 0"
    )


def test_bench_repair__an_unknown_experiment_is_named(tmp_path):
    result = CliRunner().invoke(app, ["bench-repair", "birds", "--out", str(tmp_path)])
    assert isinstance(result.exception, ConfigError)
    assert result.exception.given == ["birds"]
