"""Time that this process waits instead of computing: for images to be read, for downloads, for loops that another process compiles."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock


class _Total:
    def __init__(self) -> None:
        self.seconds = 0.0
        self.lock = Lock()


_TOTAL = _Total()


@contextmanager
def waiting() -> Iterator[None]:
    """Count what is within as waiting."""
    begun = time.perf_counter()
    try:
        yield
    finally:
        with _TOTAL.lock:
            _TOTAL.seconds += time.perf_counter() - begun


def waited_seconds() -> float:
    """Return how long this process has waited so far, all threads together."""
    return _TOTAL.seconds
