import os
import subprocess
import sys
from pathlib import Path

import pytest

from weakspot.core.errors import ConfigError
from weakspot.media.remote import FOLDER_VARIABLE, MEGABYTES_VARIABLE, RemoteReading, choose, reading_as, remote_reading

SAY = "from weakspot.media.remote import remote_reading; r = remote_reading(); print(r.cache_megabytes, r.cache_folder)"


def test_from_environment__what_a_worker_inherits(monkeypatch):
    monkeypatch.setenv(MEGABYTES_VARIABLE, "12")
    monkeypatch.setenv(FOLDER_VARIABLE, "/somewhere")
    assert RemoteReading.from_environment() == RemoteReading(cache_megabytes=12, cache_folder="/somewhere")


def test_from_environment__no_number(monkeypatch):
    monkeypatch.setenv(MEGABYTES_VARIABLE, "much")
    with pytest.raises(ConfigError, match="whole number"):
        RemoteReading.from_environment()


def test_choose__reaches_a_process_that_is_started_afterwards(tmp_path):
    with reading_as(RemoteReading()):
        choose(RemoteReading(cache_megabytes=7, cache_folder=str(tmp_path)))
        told = subprocess.run([sys.executable, "-c", SAY], capture_output=True, text=True, check=True).stdout
    assert told.split() == ["7", str(tmp_path)]


def test_reading_as__leaves_everything_as_it_was():
    before, environment = remote_reading(), dict(os.environ)
    with reading_as(RemoteReading(cache_megabytes=3)):
        assert remote_reading().cache_megabytes == 3
    assert remote_reading() == before
    assert dict(os.environ) == environment


def test_folder__is_the_users_own(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert RemoteReading().folder == tmp_path / "weakspot" / "pictures"
    assert RemoteReading(cache_folder="/x").folder == Path("/x")
