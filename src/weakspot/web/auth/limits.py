"""How often somebody may ask, and how long whoever guesses passwords has to wait."""

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

MOST_BUCKETS = 20_000


@dataclass(frozen=True, kw_only=True)
class Rate:
    """How often.

    Args:
        burst: requests at once.
        a_second: requests a second in the long run.
    """

    burst: float
    a_second: float


class Buckets:
    """One bucket of requests for everybody who asks; those who have not asked for long are forgotten.

    Args:
        rate: how often everybody may ask.
        clock: seconds that only grow.
    """

    def __init__(self, rate: Rate, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._guard = threading.Lock()
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> int:
        """Take one request out of somebody's bucket: return 0, or in how many seconds there is one again."""
        with self._guard:
            left = self._now_left(key)
            if left < 1:
                return max(1, math.ceil((1 - left) / self._rate.a_second))
            self._put(key, left - 1)
            return 0

    def give_back(self, key: str) -> None:
        """Put a request back that should not have counted."""
        with self._guard:
            self._put(key, min(self._rate.burst, self._now_left(key) + 1))

    def _now_left(self, key: str) -> float:
        left, since = self._left.get(key, (self._rate.burst, self._clock()))
        return min(self._rate.burst, left + (self._clock() - since) * self._rate.a_second)

    def _put(self, key: str, left: float) -> None:
        self._left[key] = (left, self._clock())
        self._left.move_to_end(key)
        while len(self._left) > MOST_BUCKETS:
            self._left.popitem(last=False)


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
        with self._guard:
            count, _ = self._known(login, address)
            self._failures[login, address] = (count + 1, self._clock())
            self._failures.move_to_end((login, address))
            while len(self._failures) > MOST_REMEMBERED:
                self._failures.popitem(last=False)

    def succeeded(self, login: str, address: str) -> None:
        with self._guard:
            self._failures.pop((login, address), None)

    def _known(self, login: str, address: str) -> tuple[int, float]:
        count, last = self._failures.get((login, address), (0, 0.0))
        return (0, 0.0) if self._clock() - last > FORGOTTEN_AFTER_SECONDS else (count, last)
