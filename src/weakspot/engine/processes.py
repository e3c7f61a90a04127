"""Heavy maps in other processes: a picture that kills its decoder, or a model that holds the interpreter, costs one worker."""

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any

from weakspot.core.roles import BatchWork, Item, Result
from weakspot.engine.ahead import available_cores
from weakspot.engine.crew import Crew, Death
from weakspot.engine.intake import Intake, refuse_empty_batches, refuse_negative
from weakspot.engine.parcels import BatchPace, MapPace
from weakspot.engine.station import BatchOrder, MapOrder, Station, own_version
from weakspot.engine.travel import Packer

MEGABYTE = 2**20


@dataclass(frozen=True, kw_only=True)
class ProcessEngine:
    """Maps in processes of this machine, in order, with a bounded number of items under way.

    A process that dies takes nothing with it but the items it had, which are tried again. Functions and items must be such as
    `pickle` can send.

    Args:
        n_workers: processes; 0 means one a core, and a single one for work in batches, as models use all cores by themselves.
        queue_depth: items that may wait for each process.
        memory_megabytes: most memory that a process may reserve; 0 means no bound. Beyond it an item gets a MemoryError, or goes
            to `lost` where there is one. Libraries reserve more than they use, so it must be generous.
    """

    n_workers: int = 0
    queue_depth: int = 64
    memory_megabytes: int = 0

    def __post_init__(self) -> None:
        """Refuse settings that cannot mean anything."""
        settings = {"n_workers": self.n_workers, "queue_depth": self.queue_depth, "memory_megabytes": self.memory_megabytes}
        refuse_negative("processes", **settings)

    def map(
        self, function: Callable[[Item], Result], items: Iterable[Item], *, lost: Callable[[Item], Result] | None = None
    ) -> Generator[Result, None, None]:
        """Yield `function(item)` for every item, in the order of items; when the caller stops early, the processes are ended."""
        staff = _Processes(n_workers=self.n_workers or available_cores(), memory_megabytes=self.memory_megabytes)
        crew = Crew(staff, MapOrder(function=function), MapPace(queue_depth=self.queue_depth), lost)
        yield from crew.results(Intake(items))

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
        staff = _Processes(n_workers=n_workers, memory_megabytes=self.memory_megabytes)
        order = BatchOrder(build=build, n_threads=max(1, available_cores() // n_workers))
        crew = Crew(staff, order, BatchPace(batch_size=batch_size, queue_depth=self.queue_depth), lost)
        yield from crew.results(Intake(items))


@dataclass(frozen=True, kw_only=True)
class _Processes:
    """Hires processes that start afresh, as threads of a model do not survive a fork."""

    n_workers: int
    memory_megabytes: int
    packer: Packer = pickle

    def n_wanted(self) -> int:
        return self.n_workers

    def hire(self) -> "_ProcessWorker":
        return _ProcessWorker(self.memory_megabytes)


class _ProcessWorker:
    """One process, as a pool of its own: when it dies, the others go on."""

    def __init__(self, memory_megabytes: int) -> None:
        spawning = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(1, mp_context=spawning, initializer=_move_in, initargs=(memory_megabytes,))

    def start(self, order: bytes) -> "Future[bytes]":
        return self._call(_start, order, own_version())

    def begin(self, number: int, items: bytes) -> None:
        self._call(_begin, number, items)

    def finish(self, number: int) -> "Future[bytes]":
        return self._call(_finish, number)

    def do(self, number: int, items: bytes) -> "Future[bytes]":
        return self._call(_do, number, items)

    def death(self, error: BaseException) -> Death | None:
        return "worker" if isinstance(error, BrokenExecutor) else None

    def stop(self) -> None:
        """End the process at once, whatever it is doing."""
        for process in list((self._pool._processes or {}).values()):  # noqa: SLF001 - `kill_workers` comes with Python 3.14
            process.kill()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _call(self, function: Callable[..., Any], *given: object) -> "Future[Any]":
        try:
            return self._pool.submit(function, *given)
        except BrokenExecutor as error:
            broken: Future[Any] = Future()
            broken.set_exception(error)
            return broken


_STATION = Station(pickle)
"""Where the parcels of this process are done, if it is a worker."""


def _move_in(memory_megabytes: int) -> None:
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


def _start(order: bytes, callers_version: str) -> bytes:
    return _STATION.start(order, callers_version)


def _begin(number: int, items: bytes) -> None:
    _STATION.begin(number, items)


def _finish(number: int) -> bytes:
    return _STATION.finish(number)


def _do(number: int, items: bytes) -> bytes:
    return _STATION.do(number, items)
