"""Heavy maps in other processes: an image that kills its decoder, or a model that holds the interpreter, costs one worker."""

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from weakspot.core.bounds import NonNegativeInt, check_bounds
from weakspot.core.machine import available_cores
from weakspot.core.roles import BatchWork, Item, Result
from weakspot.data.engine.chunks import (
    BatchPace,
    ChunkQueue,
    MapPace,
    OneByOne,
    refuse_empty_batches,
)
from weakspot.data.engine.pool import Death, WorkerPool
from weakspot.data.engine.worker import Dumps, WorkerSide, batch_order, own_version

MEGABYTE = 2**20


@dataclass(frozen=True, kw_only=True)
class ProcessEngine:
    """Maps in processes of this machine, in order, with a bounded number of items under way.

    A process that dies takes nothing with it but the items it had, which are tried again. Functions and items must be such as
    `pickle` can send.

    Args:
        n_workers: processes; 0 means one per core, and a single one for work in batches, as models use all cores by themselves.
        queue_depth: items that may wait for each process.
        memory_megabytes: most memory that a process may reserve; 0 means no bound. Beyond it an item gets a MemoryError, or goes
            to `lost` where there is one. Libraries reserve more than they use, so it must be generous.
    """

    n_workers: NonNegativeInt = 0
    queue_depth: NonNegativeInt = 64
    memory_megabytes: NonNegativeInt = 0

    def __post_init__(self) -> None:
        check_bounds(self, where="processes")

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        *,
        lost: Callable[[Item], Result] | None = None,
    ) -> Generator[Result, None, None]:
        """Yield `function(item)` for every item, in the order of items; when the caller stops early, the processes are ended."""
        workers = _Processes(
            n_workers=self.n_workers or available_cores(), memory_megabytes=self.memory_megabytes
        )
        pool = WorkerPool(
            workers, partial(OneByOne, function), MapPace(queue_depth=self.queue_depth), lost
        )
        yield from pool.results(ChunkQueue(items))

    def map_batches(
        self,
        build: Callable[[], BatchWork[Item, Result]],
        items: Iterable[Item],
        *,
        batch_size: int,
        lost: Callable[[Item], Result] | None = None,
    ) -> Generator[Result, None, None]:
        """Yield what the work, built once in every process, makes of every batch, in order."""
        refuse_empty_batches(batch_size)
        n_workers = self.n_workers or 1
        workers = _Processes(n_workers=n_workers, memory_megabytes=self.memory_megabytes)
        order = batch_order(build, n_threads=max(1, available_cores() // n_workers))
        pool = WorkerPool(
            workers, order, BatchPace(batch_size=batch_size, queue_depth=self.queue_depth), lost
        )
        yield from pool.results(ChunkQueue(items))


@dataclass(frozen=True, kw_only=True)
class _Processes:
    """Starts processes that start afresh, as threads of a model do not survive a fork."""

    n_workers: int
    memory_megabytes: int
    dumps: Dumps = pickle.dumps

    def n_wanted(self) -> int:
        return self.n_workers

    def start(self) -> "_ProcessWorker":
        return _ProcessWorker(self.memory_megabytes)


class _ProcessWorker:
    """One process, as a pool of its own: when it dies, the others go on."""

    def __init__(self, memory_megabytes: int) -> None:
        spawning = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(
            1, mp_context=spawning, initializer=_set_up_worker, initargs=(memory_megabytes,)
        )

    def start(self, order: bytes) -> "Future[bytes]":
        return self._call("start", order, own_version())

    def begin(self, number: int, items: bytes) -> None:
        self._call("begin", number, items)

    def finish(self, number: int) -> "Future[bytes]":
        return self._call("finish", number)

    def do(self, number: int, items: bytes) -> "Future[bytes]":
        return self._call("do", number, items)

    def death(self, error: BaseException) -> Death | None:
        return "worker" if isinstance(error, BrokenExecutor) else None

    def stop(self) -> None:
        """End the process at once, whatever it is doing."""
        for process in list((self._pool._processes or {}).values()):  # noqa: SLF001 - `kill_workers` comes with Python 3.14
            process.kill()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _call(self, name: str, *given: object) -> "Future[Any]":
        try:
            return self._pool.submit(_do_here, name, given)
        except BrokenExecutor as error:
            broken: Future[Any] = Future()
            broken.set_exception(error)
            return broken


_SIDE = WorkerSide(pickle.dumps)
"""Where the chunks of this process are done, if it is a worker."""


def _set_up_worker(memory_megabytes: int) -> None:
    """Make this process a worker: Ctrl-C is for the caller, and it does not outlive the caller."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_caller, daemon=True).start()
    if memory_megabytes:
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (memory_megabytes * MEGABYTE, hard))


def _end_with_caller() -> None:
    caller = multiprocessing.parent_process()
    if caller is not None:
        caller.join()
        os._exit(1)


def _do_here(call: str, given: tuple[object, ...]) -> Any:
    """Do a call of `WorkerSide` in this process."""
    return getattr(_SIDE, call)(*given)
