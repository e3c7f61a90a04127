from pathlib import Path

import pytest

from weakspot.core.machine import user_cache_folder


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
