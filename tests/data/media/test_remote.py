import os
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from weakspot.core.errors import ConfigError, MissingExtraError
from weakspot.data.remote import (
    FOLDER_VARIABLE,
    MEGABYTES_VARIABLE,
    LastingTroubleError,
    PassingTroubleError,
    RemoteReading,
    asked_wait,
    is_refusal,
    reading_as,
    remote_reading,
    try_again,
    wait_after,
)

SAY = "from weakspot.data.remote import remote_reading; r = remote_reading(); print(r.cache_megabytes, r.cache_folder)"


def test_from_environment__no_number(monkeypatch):
    monkeypatch.setenv(MEGABYTES_VARIABLE, "much")
    with pytest.raises(ConfigError, match="whole number"):
        RemoteReading.from_environment()


def test_remote_reading__a_process_reads_as_its_environment_says(tmp_path):
    environment = os.environ | {MEGABYTES_VARIABLE: "7", FOLDER_VARIABLE: str(tmp_path)}
    printed = subprocess.run(
        [sys.executable, "-c", SAY], capture_output=True, text=True, check=True, env=environment
    ).stdout
    assert printed.split() == ["7", str(tmp_path)]


def test_reading_as__leaves_everything_as_it_was():
    before, environment = remote_reading(), dict(os.environ)
    with reading_as(RemoteReading(cache_megabytes=3)):
        assert remote_reading().cache_megabytes == 3
    assert remote_reading() == before
    assert dict(os.environ) == environment


QUICK = RemoteReading(first_wait=0.001, n_tries=4)


def failing(errors):
    """Return a read that raises the given errors one after the other, then answers; and the list of attempts."""
    seen = []

    def read(seconds):
        seen.append(seconds)
        if len(seen) <= len(errors):
            raise errors[len(seen) - 1]
        return b"answer"

    return read, seen


def test_run__passing_trouble_is_tried_again():
    read, seen = failing([ConnectionError("gone"), PassingTroubleError("500"), RuntimeError("odd")])
    assert try_again(read, "a", QUICK) == b"answer"
    assert len(seen) == 4


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError("a"),
        PermissionError("a"),
        ValueError("a"),
        MissingExtraError("x", extra="y", purpose="z"),
        LastingTroubleError("a"),
    ],
)
def test_run__lasting_trouble_is_not_tried_again(error):
    read, seen = failing([error])
    with pytest.raises(type(error)):
        try_again(read, "a", QUICK)
    assert len(seen) == 1


def test_wait_after__grows_differs_and_is_repeatable():
    reading = RemoteReading()
    waits = [wait_after(attempt, "a", reading) for attempt in range(1, 30)]
    assert waits == [wait_after(attempt, "a", reading) for attempt in range(1, 30)]
    assert waits[0] != wait_after(1, "b", reading)
    for number, wait in enumerate(waits):
        usual = min(0.25 * 2**number, 15.0)
        assert 0.5 * usual <= wait < 1.5 * usual
    assert wait_after(1, "a", reading, 9.0) == 9.0


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("7", 7.0),
        ("0", 0.0),
        ("Tue, 01 Jan 2030 12:00:30 GMT", 30.0),
        ("Tue, 01 Jan 2030 11:00:00 GMT", 0.0),
        ("soon", None),
        ("", None),
    ],
)
def test_asked_wait__number_date_and_nonsense(header, seconds):
    assert asked_wait(header, datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)) == seconds


def test_is_refusal__by_status_and_name():
    class NoCredentialsError(Exception):
        pass

    class AnswerError(Exception):
        status_code = 403

    assert is_refusal(NoCredentialsError())
    assert is_refusal(AnswerError())
    assert is_refusal(OSError("Forbidden: bucket/a"))
    assert not is_refusal(OSError("gone"))
