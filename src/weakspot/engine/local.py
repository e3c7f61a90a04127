"""Heavy maps in threads of this process: right for decoding, hashing and waiting, which leave the interpreter free."""

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

from weakspot.core.errors import ConfigError
from weakspot.core.roles import BatchWork, Item, Result


@dataclass(frozen=True, kw_only=True)
class LocalEngine:
    """Maps in threads, in order, with a bounded number of items under way.

    Args:
        n_workers: threads; 0 means one a core.
        queue_depth: items that may wait or lie ready beyond those being worked on. It bounds memory, and lets threads work ahead
            while the caller is busy with a batch.
    """

    n_workers: int = 0
    queue_depth: int = 64

    def __post_init__(self) -> None:
        """Refuse settings that cannot mean anything."""
        if self.n_workers < 0 or self.queue_depth < 0:
            given = {"n_workers": self.n_workers, "queue_depth": self.queue_depth}
            raise ConfigError("The settings of the local engine must not be negative.", given=given)

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        *,
        lost: Callable[[Item], Result] | None = None,  # noqa: ARG002 - a thread cannot be lost without the whole process
    ) -> Generator[Result, None, None]:
        """Yield `function(item)` for every item, in the order of items.

        The first error of an item is raised in its turn. When the caller stops early (an error, Ctrl-C, `close`), nothing new is
        started and what is under way is not waited for.
        """
        n_workers = self.n_workers or len(os.sched_getaffinity(0))
        waiting: deque[Future[Result]] = deque()
        remaining = iter(items)
        pool = ThreadPoolExecutor(n_workers, thread_name_prefix="weakspot")
        try:
            waiting.extend(pool.submit(function, item) for item in islice(remaining, n_workers + self.queue_depth))
            while waiting:
                result = waiting.popleft().result()
                waiting.extend(pool.submit(function, item) for item in islice(remaining, 1))
                yield result
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def map_batches(
        self,
        build: Callable[[], BatchWork[Item, Result]],
        items: Iterable[Item],
        *,
        batch_size: int,
        lost: Callable[[Item], Result] | None = None,  # noqa: ARG002 - as above
    ) -> Generator[Result, None, None]:
        """Yield what the work makes of every batch, in order; threads prepare the next ones meanwhile."""
        work = build()
        ready: list[object] = []
        for one in self.map(work.prepare, items):
            ready.append(one)
            if len(ready) == batch_size:
                yield work.run(ready)
                ready = []
        if ready:
            yield work.run(ready)
