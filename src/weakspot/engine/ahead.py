"""Batches whose items are prepared in threads ahead of time."""

import os
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic

from weakspot.core.roles import BatchWork, Item, Result
from weakspot.core.waiting import waiting

LOWEST_PRIORITY = 19


class AheadOfTime(Generic[Item, Result]):
    """Prepares items of later batches in threads while whoever calls `run` is busy with an earlier one.

    Threads that prepare give way to the threads of the model: where both want a core, the model gets it, and preparing fills the
    gaps. When nothing is prepared the model waits, and preparing gets all cores.
    """

    def __init__(self, work: BatchWork[Item, Result], n_threads: int) -> None:
        self._work = work
        self._threads = ThreadPoolExecutor(
            n_threads, thread_name_prefix="weakspot-prepare", initializer=give_way
        )

    def prepare(self, items: Sequence[Item]) -> list[Future[object]]:
        return [self._threads.submit(self._work.prepare, item) for item in items]

    def run(self, prepared: Sequence[Future[object]]) -> Result:
        """Return what comes of a batch; an error of preparing is raised here."""
        with waiting():
            ready = [item.result() for item in prepared]
        return self._work.run(ready)

    def close(self) -> None:
        """Start nothing new; what is under way is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def give_way() -> None:
    """Give this thread the lowest priority, where threads have one of their own."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, LOWEST_PRIORITY)
