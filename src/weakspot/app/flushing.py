"""When finished work is written: often enough that a crash costs little, rarely enough that files stay few."""

import time
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class FlushPolicy:
    """Write when so many samples are ready or so much time has passed.

    Args:
        n_samples: most samples that are kept in memory.
        seconds: longest time that finished work is kept in memory only.
    """

    n_samples: int = 4096
    seconds: float = 5.0


class FlushClock:
    """Says when it is time to write."""

    def __init__(self, policy: FlushPolicy) -> None:
        self._policy = policy
        self._last = time.monotonic()

    def is_due(self, n_waiting: int) -> bool:
        """Return whether the waiting samples should be written now."""
        is_late = time.monotonic() - self._last >= self._policy.seconds
        return n_waiting >= self._policy.n_samples or (n_waiting > 0 and is_late)

    def flushed(self) -> None:
        """Note that everything was written just now."""
        self._last = time.monotonic()
