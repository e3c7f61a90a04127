"""What a process has and how long it takes: cores, the user's caches, time spent waiting, and the pace of a step."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


CACHE_VARIABLE = "WEAKSPOT_CACHE"


def user_cache_folder() -> Path:
    """Return the folder for what can be fetched or computed again: $WEAKSPOT_CACHE, else the platform's user cache."""
    if os.environ.get(CACHE_VARIABLE):
        return Path(os.environ[CACHE_VARIABLE]).expanduser()
    if sys.platform == "win32":
        return (
            Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
            / "weakspot"
            / "Cache"
        )
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "weakspot"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "weakspot"


_LOCK = Lock()
_WAITS: list[float] = [0.0]
"""Seconds that this process has waited, all threads together."""


@contextmanager
def waiting() -> Iterator[None]:
    """Count what is within as waiting."""
    begun = time.perf_counter()
    try:
        yield
    finally:
        with _LOCK:
            _WAITS[0] += time.perf_counter() - begun


def waited_seconds() -> float:
    """Return how long this process has waited so far, all threads together."""
    return _WAITS[0]


MIN_SECONDS = 2.0
"""So long a step is watched before anything is foretold."""


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How fast a step goes.

    Args:
        stage: the step.
        started: when it was first heard of, in seconds.
        done_first: how many items were done then; what was done before says nothing about the pace.
        done: how many are done now.
        total: how many there are, None if that is not known.
        told: when that was heard.

    >>> Pace(stage="embed", started=0, done_first=0, done=30, total=90, told=10).seconds_left(10)
    20
    """

    stage: str
    started: float
    done_first: int
    done: int
    total: int | None
    told: float

    def seconds_left(self, moment: float) -> int | None:
        """Return how long the rest will take, None as long as that is not known."""
        n_new, taken = self.done - self.done_first, self.told - self.started
        is_over = self.total is not None and self.done >= self.total
        if self.total is None or is_over or n_new < 1 or taken < MIN_SECONDS:
            return None
        left = taken / n_new * (self.total - self.done) - (moment - self.told)
        return max(0, round(left))


def next_pace(before: Pace | None, stage: str, done: int, total: int | None, moment: float) -> Pace:
    """Return the pace after another message of the work; a new step begins anew.

    Args:
        before: what was known so far.
        stage: the step.
        done: how many items are done.
        total: of how many, None if that is not known.
        moment: when it was heard, in seconds.
    """
    goes_on = before is not None and before.stage == stage and done >= before.done
    return Pace(
        stage=stage,
        started=before.started if before is not None and goes_on else moment,
        done_first=before.done_first if before is not None and goes_on else done,
        done=done,
        total=total,
        told=moment,
    )
