"""How often somebody may ask: buckets that fill up again with time."""

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
