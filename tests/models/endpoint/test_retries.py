import threading

import httpx
import numpy as np
import pytest

from weakspot.models.endpoint.requests import Retries, seconds_for_all, within


def test_wait_seconds__doubles_with_jitter_and_a_ceiling():
    retries = Retries(first_wait_seconds=1.0, longest_wait_seconds=10.0)
    waits = [
        retries.wait_seconds(attempt, None, np.random.default_rng(attempt)) for attempt in range(5)
    ]
    assert all(2.0**attempt <= wait <= 1.5 * 2.0**attempt for attempt, wait in enumerate(waits[:3]))
    assert waits[4] == 10.0
    assert waits == [
        retries.wait_seconds(attempt, None, np.random.default_rng(attempt)) for attempt in range(5)
    ]


def test_wait_seconds__server_decides_within_the_ceiling():
    retries = Retries(first_wait_seconds=1.0, longest_wait_seconds=10.0)
    jitter = np.random.default_rng(0)
    assert retries.wait_seconds(3, 0.0, jitter) == 0.0
    assert retries.wait_seconds(0, 7.0, jitter) == 7.0
    assert retries.wait_seconds(0, 3600.0, jitter) == 10.0


def test_within__gives_the_result_or_the_error():
    assert within(10.0, lambda: "answer") == "answer"
    with pytest.raises(ZeroDivisionError):
        within(10.0, lambda: 1 / 0)


def test_within__takes_too_long__does_not_wait():
    released = threading.Event()
    with pytest.raises(TimeoutError, match=r"not complete after 0.05 s"):
        within(0.05, released.wait)
    released.set()


@pytest.mark.parametrize(("silence", "seconds"), [(2.0, 20.0), (None, 600.0)])
def test_seconds_for_all__is_some_silences(silence, seconds):
    with httpx.Client(timeout=silence) as client:
        assert seconds_for_all(client) == seconds
