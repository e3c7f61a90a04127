"""Heavy maps in threads of this process: right for decoding, hashing and waiting, which leave the interpreter free."""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from weakspot.core.bounds import NonNegativeInt, check_bounds
from weakspot.core.machine import available_cores
from weakspot.core.roles import BatchWork, Item, Result
from weakspot.data.engine.chunks import AheadOfTime, ChunkQueue, refuse_empty_batches

MIN_BATCHES = 2


@dataclass(frozen=True, kw_only=True)
class LocalEngine:
    """Maps in threads, in order, with a bounded number of items under way.

    Args:
        n_workers: threads; 0 means one per core.
        queue_depth: items that may wait or lie ready beyond those being worked on. It bounds memory, and lets threads work ahead
            while the caller is busy with a batch.
    """

    n_workers: NonNegativeInt = 0
    queue_depth: NonNegativeInt = 64

    def __post_init__(self) -> None:
        check_bounds(self, where="local")

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        *,
        lost: Callable[[Item], Result] | None = None,  # noqa: ARG002 - a thread cannot be lost without the whole process
    ) -> Generator[Result, None, None]:
        """Yield `function(item)` for every item, in the order of items.

        The first error, of an item or of their source, is raised in its turn. When the caller stops early (an error, Ctrl-C,
        `close`), nothing new is started and what is under way is not waited for.
        """
        n_workers = self.n_workers or available_cores()
        waiting: deque[Future[Result]] = deque()
        intake = ChunkQueue(items)
        pool = ThreadPoolExecutor(n_workers, thread_name_prefix="weakspot")
        try:
            waiting.extend(
                pool.submit(function, item) for item in intake.take(n_workers + self.queue_depth)
            )
            while waiting:
                result = waiting.popleft().result()
                waiting.extend(pool.submit(function, item) for item in intake.take(1))
                yield result
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        intake.raise_error()

    def map_batches(
        self,
        build: Callable[[], BatchWork[Item, Result]],
        items: Iterable[Item],
        *,
        batch_size: int,
        lost: Callable[[Item], Result] | None = None,  # noqa: ARG002 - a thread cannot be lost without the whole process
    ) -> Generator[Result, None, None]:
        """Yield what the work makes of every batch, in order.

        Threads prepare the next batches while one thread runs them, also while the caller is busy with a result. When the caller
        stops early, the batch that runs is waited for, so that the work is never run by two threads.
        """
        refuse_empty_batches(batch_size)
        n_batches = MIN_BATCHES + self.queue_depth // batch_size
        waiting: deque[Future[Result]] = deque()
        intake = ChunkQueue(items)
        with _running(build(), self.n_workers or available_cores()) as submit:
            while True:
                while len(waiting) < n_batches and (batch := intake.take_batch(batch_size)):
                    waiting.append(submit(batch))
                if not waiting:
                    break
                yield waiting.popleft().result()
        intake.raise_error()


@contextmanager
def _running(
    work: BatchWork[Item, Result], n_threads: int
) -> Iterator[Callable[[Sequence[Item]], Future[Result]]]:
    """Yield what prepares a batch and runs it after those before it, in a thread of its own; nothing runs after an error."""
    ahead = AheadOfTime(work, n_threads)
    runner = ThreadPoolExecutor(1, thread_name_prefix="weakspot-run")
    is_stopped = threading.Event()

    def run(prepared: Sequence[Future[object]]) -> Result:
        if is_stopped.is_set():
            raise CancelledError
        try:
            return ahead.run(prepared)
        except BaseException:
            is_stopped.set()
            raise

    wait = True
    try:
        yield lambda batch: runner.submit(run, ahead.prepare(batch))
    except KeyboardInterrupt:
        wait = False
        raise
    finally:
        is_stopped.set()
        ahead.close()
        runner.shutdown(wait=wait, cancel_futures=True)
