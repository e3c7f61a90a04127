"""Guessing passwords takes ever longer: after some failures a login is closed to an address for a growing while."""

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

FREE_FAILURES = 5
FIRST_SECONDS = 10.0
LONGEST_SECONDS = 900.0
FORGOTTEN_AFTER_SECONDS = 3600.0
MOST_REMEMBERED = 20_000


class Lockouts:
    """Who failed how often.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        self._failures: OrderedDict[tuple[str, str], tuple[int, float]] = OrderedDict()

    def seconds_left(self, login: str, address: str) -> int:
        """Return for how long a login is still closed to an address; 0 if it is open."""
        with self._guard:
            count, last = self._known(login, address)
            if count < FREE_FAILURES:
                return 0
            wait: float = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** (count - FREE_FAILURES))
            return max(0, math.ceil(last + wait - self._clock()))

    def failed(self, login: str, address: str) -> None:
        """Remember a wrong password."""
        with self._guard:
            count, _ = self._known(login, address)
            self._failures[login, address] = (count + 1, self._clock())
            self._failures.move_to_end((login, address))
            while len(self._failures) > MOST_REMEMBERED:
                self._failures.popitem(last=False)

    def succeeded(self, login: str, address: str) -> None:
        """Forget the failures of somebody who came in."""
        with self._guard:
            self._failures.pop((login, address), None)

    def _known(self, login: str, address: str) -> tuple[int, float]:
        count, last = self._failures.get((login, address), (0, 0.0))
        return (0, 0.0) if self._clock() - last > FORGOTTEN_AFTER_SECONDS else (count, last)
