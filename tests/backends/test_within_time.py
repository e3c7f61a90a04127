import threading

import httpx
import pytest

from weakspot.backends.within_time import seconds_for_all, within


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
