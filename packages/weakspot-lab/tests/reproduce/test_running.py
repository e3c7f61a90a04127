from dataclasses import replace

import pytest

from weakspot.core.errors import ConfigError
from weakspot_lab.reproduce.running import StepJournal, duration, run_protocol

FILES = ("tables.md", "figures.csv", "results.json", "toy.svg")


def _contents(folder):
    return {name: (folder / name).read_bytes() for name in FILES}


def test_run_protocol__killed_and_resumed_gives_the_same_tables(
    toy_request, make_protocol, tmp_path
):
    whole = replace(toy_request, out=tmp_path / "whole")
    run_protocol(make_protocol([]), whole)
    with pytest.raises(KeyboardInterrupt):
        run_protocol(make_protocol([], fail_in="sum"), toy_request)
    assert not (toy_request.out / "tables.md").exists()
    calls = []
    run_protocol(make_protocol(calls), toy_request)
    assert calls == ["sum"]
    assert _contents(toy_request.out) == _contents(whole.out)
    assert not (toy_request.out / "steps").exists()


def test_run_protocol__finished_runs_nothing_again(toy_request, make_protocol):
    run_protocol(make_protocol([]), toy_request)
    before, calls = _contents(toy_request.out), []
    run_protocol(make_protocol(calls), toy_request)
    assert calls == []
    assert _contents(toy_request.out) == before


def test_run_protocol__another_seed_runs_anew(toy_request, make_protocol):
    run_protocol(make_protocol([]), toy_request)
    calls = []
    run_protocol(make_protocol(calls), replace(toy_request, seed=1))
    assert calls == ["draw", "sum"]


def test_run_protocol__tells_the_cost_first_and_the_time_left(toy_request, make_protocol):
    said = []
    run_protocol(make_protocol([]), toy_request, say=said.append)
    assert said[:2] == ["toy: Numbers by lot.", "2 steps; about 3 s of one core."]
    assert said[2] == "1 of 2: draw, about 1 s; about 3 s left"
    assert said[3].startswith("2 of 2: sum, about 2 s; about ")


def test_run_protocol__a_file_where_the_folder_should_be(toy_request, make_protocol):
    toy_request.out.write_text("x")
    with pytest.raises(ConfigError, match="cannot be made"):
        run_protocol(make_protocol([]), toy_request)


def test_known__a_damaged_file_is_passed_over(tmp_path):
    journal = StepJournal(tmp_path, "key")
    journal.keep("one", {"a": 1})
    assert journal.known("one") == {"a": 1}
    assert StepJournal(tmp_path, "other").known("one") is None
    (tmp_path / "one.json").write_text('{"key": "key", "resu')
    assert journal.known("one") is None


def test_duration__seconds_and_minutes():
    assert [duration(one) for one in (0.0, 89.0, 91.0, 3600.0)] == [
        "1 s",
        "89 s",
        "2 min",
        "60 min",
    ]
