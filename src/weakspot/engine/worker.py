"""What runs inside a worker: it holds the function or the work, and does the chunks it is sent."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Protocol

from weakspot.core.cores import available_cores
from weakspot.core.errors import ConfigError
from weakspot.core.registry import OWN_DISTRIBUTION
from weakspot.core.roles import BatchWork
from weakspot.engine.ahead import AheadOfTime
from weakspot.engine.travel import Packer, pack_result, unpack


class ChunkRunner(Protocol):
    """Does chunks: `begin` starts what can be done ahead, `finish` does the rest."""

    def begin(self, number: int, items: Sequence[Any]) -> None:
        """Start on a chunk without waiting for anything."""

    def finish(self, number: int, results: list[Any]) -> None:
        """Add what comes of a chunk to the list."""


class Order(Protocol):
    """What a worker is to do, as it is sent."""

    def open(self) -> ChunkRunner:
        """Return what does it."""


@dataclass(frozen=True, kw_only=True)
class MapOrder:
    """A function to be applied to each item."""

    function: Callable[[Any], Any]

    def open(self) -> ChunkRunner:
        return _MapRunner(self.function)


@dataclass(frozen=True, kw_only=True)
class BatchOrder:
    """Work to be built once and run on every chunk.

    Args:
        build: builds the work.
        n_threads: threads that prepare; 0 means one per core of the worker's machine.
    """

    build: Callable[[], BatchWork[Any, Any]]
    n_threads: int

    def open(self) -> ChunkRunner:
        return _BatchRunner(AheadOfTime(self.build(), self.n_threads or available_cores()))


class _MapRunner:
    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function
        self._begun: dict[int, Sequence[Any]] = {}

    def begin(self, number: int, items: Sequence[Any]) -> None:
        self._begun[number] = items

    def finish(self, number: int, results: list[Any]) -> None:
        for item in self._begun.pop(number):
            results.append(self._function(item))


class _BatchRunner:
    def __init__(self, ahead: AheadOfTime[Any, Any]) -> None:
        self._ahead = ahead
        self._begun: dict[int, list[Future[object]]] = {}

    def begin(self, number: int, items: Sequence[Any]) -> None:
        self._begun[number] = self._ahead.prepare(items)

    def finish(self, number: int, results: list[Any]) -> None:
        results.append(self._ahead.run(self._begun.pop(number)))


class WorkerSide:
    """A worker's place of work. Calls come one at a time; a later chunk is begun before an earlier one is finished."""

    def __init__(self, packer: Packer) -> None:
        self._packer = packer
        self._runner: ChunkRunner | None = None
        self._unreadable: dict[int, BaseException] = {}

    def start(self, order: bytes, callers_version: str) -> bytes:
        """Take an order; the result says which process this is."""

        def work(results: list[Any]) -> None:
            if callers_version != own_version():
                what = f"A worker has weakspot {own_version()}, the caller has {callers_version}."
                raise ConfigError(what, fix="Install the same version everywhere.")
            opened: Order = unpack(order)
            self._runner = opened.open()
            results.append(os.getpid())

        return pack_result(work, self._packer)

    def begin(self, number: int, items: bytes) -> None:
        """Start on a chunk; what goes wrong is raised when it is finished."""
        try:
            self._started().begin(number, unpack(items))
        except Exception as error:  # noqa: BLE001 - raised by `finish`
            self._unreadable[number] = error

    def finish(self, number: int) -> bytes:

        def work(results: list[Any]) -> None:
            if number in self._unreadable:
                raise self._unreadable.pop(number)
            self._started().finish(number, results)

        return pack_result(work, self._packer)

    def do(self, number: int, items: bytes) -> bytes:
        self.begin(number, items)
        return self.finish(number)

    def _started(self) -> ChunkRunner:
        if self._runner is None:
            raise ConfigError("A worker was given a chunk before its order.")
        return self._runner


def own_version() -> str:
    return version(OWN_DISTRIBUTION)
