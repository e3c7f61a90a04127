import numpy as np

from weakspot.backends.endpoint_retries import Retries


def test_wait_seconds__doubles_with_jitter_and_a_ceiling():
    retries = Retries(first_wait_seconds=1.0, longest_wait_seconds=10.0)
    waits = [retries.wait_seconds(attempt, None, np.random.default_rng(attempt)) for attempt in range(5)]
    assert all(2.0**attempt <= wait <= 1.5 * 2.0**attempt for attempt, wait in enumerate(waits[:3]))
    assert waits[4] == 10.0
    assert waits == [retries.wait_seconds(attempt, None, np.random.default_rng(attempt)) for attempt in range(5)]


def test_wait_seconds__server_decides_within_the_ceiling():
    retries = Retries(first_wait_seconds=1.0, longest_wait_seconds=10.0)
    jitter = np.random.default_rng(0)
    assert retries.wait_seconds(3, 0.0, jitter) == 0.0
    assert retries.wait_seconds(0, 7.0, jitter) == 7.0
    assert retries.wait_seconds(0, 3600.0, jitter) == 10.0
