import os

from weakspot.core.machine import available_cores


def test_available_cores():
    assert 1 <= available_cores() <= os.cpu_count()
