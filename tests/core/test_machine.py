import os
import time
from pathlib import Path

import pytest

from weakspot.core.machine import (
    available_cores,
    next_pace,
    user_cache_folder,
    waited_seconds,
    waiting,
)


def test_available_cores():
    assert 1 <= available_cores() <= os.cpu_count()


def test_user_cache_folder__variable_before_platform(monkeypatch, tmp_path):
    monkeypatch.setenv("WEAKSPOT_CACHE", str(tmp_path / "own"))
    assert user_cache_folder() == tmp_path / "own"


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/c"}, "/c/weakspot"),
        ("linux", {}, "~/.cache/weakspot"),
        ("darwin", {}, "~/Library/Caches/weakspot"),
        ("win32", {"LOCALAPPDATA": "/l"}, "/l/weakspot/Cache"),
    ],
)
def test_user_cache_folder__of_every_platform(monkeypatch, platform, variables, expected):
    for name in ("WEAKSPOT_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.platform", platform)
    assert user_cache_folder() == Path(expected).expanduser()


def test_waiting__counts_what_is_within_also_when_it_fails(monkeypatch):
    clock = iter([10.0, 12.5, 20.0, 21.0])
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    before = waited_seconds()
    with waiting():
        pass
    with pytest.raises(ValueError, match="late"), waiting():
        raise ValueError("late")
    assert waited_seconds() - before == pytest.approx(3.5)


def _heard(*messages):
    pace = None
    for moment, stage, done, total in messages:
        pace = next_pace(pace, stage, done, total, moment)
    assert pace is not None
    return pace


def test_next_pace__half_done__as_long_again():
    assert _heard((0, "embed", 0, 100), (10, "embed", 50, 100)).seconds_left(10) == 10
    assert _heard((0, "embed", 0, 100), (10, "embed", 50, 100)).seconds_left(14) == 6


def test_next_pace__resumed__what_was_done_before_says_nothing():
    assert _heard((0, "embed", 80, 100), (10, "embed", 90, 100)).seconds_left(10) == 10


def test_next_pace__too_early_or_unknown_or_over__nothing_is_foretold():
    assert _heard((0, "embed", 0, 100), (1, "embed", 50, 100)).seconds_left(1) is None
    assert _heard((0, "embed", 0, None), (10, "embed", 50, None)).seconds_left(10) is None
    assert _heard((0, "embed", 0, 100), (10, "embed", 100, 100)).seconds_left(10) is None
    assert _heard((0, "ingest", 0, 9), (10, "embed", 3, 9)).seconds_left(10) is None
