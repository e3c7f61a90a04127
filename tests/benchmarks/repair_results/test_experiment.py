import json

import pytest
from repair_results.experiment import run_experiment
from repair_results.figures import Figures

from weakspot.core.errors import ConfigError


class Counting:
    """An experiment of three units that breaks off at one of them the first time."""

    name, command = "counting", "python benchmarks/repair.py counting"

    def __init__(self, stop_at=None):
        self.measured, self.stop_at = [], stop_at

    def units(self):
        return ["one", "two", "three"]

    def measure(self, unit, progress):
        if unit == self.stop_at:
            raise KeyboardInterrupt
        self.measured.append(unit)
        return (Figures(unit=unit, part="all", arm="plain", values={"length": float(len(unit))}),)

    def page(self, figures):
        return "# Counting\n\n" + " ".join(
            f"{one.unit}={one.values['length']:.0f}" for one in figures
        )


def test_run_experiment__page_and_record(tmp_path):
    seen = []
    written = run_experiment(Counting(), tmp_path / "out", progress=lambda *one: seen.append(one))
    page, record = (path.read_text() for path in written.files)
    assert "one=3 two=3 three=5" in page
    assert "`python benchmarks/repair.py counting`" in page
    assert [one["unit"] for one in json.loads(record)["figures"]] == ["one", "two", "three"]
    assert {"command", "seconds", "versions", "figures"} == set(json.loads(record))
    assert seen[-1] == ("counting", 3, 3)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "counting.json",
        "counting.md",
    ]


def test_run_experiment__goes_on_where_it_stopped(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run_experiment(Counting(stop_at="two"), tmp_path)
    again = Counting()
    written = run_experiment(again, tmp_path)
    assert again.measured == ["two", "three"]
    assert "1 units known from an interrupted run" in written.page
    assert "one=3 two=3 three=5" in written.page


def test_run_experiment__a_folder_that_cannot_be_made_is_refused_before_anything_is_measured(
    tmp_path,
):
    (tmp_path / "file").write_text("")
    experiment = Counting()
    with pytest.raises(ConfigError, match="cannot be written"):
        run_experiment(experiment, tmp_path / "file" / "out")
    assert experiment.measured == []


def test_run_experiment__a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "counting.md").mkdir()
    with pytest.raises(ConfigError, match="cannot be written"):
        run_experiment(Counting(), tmp_path)
