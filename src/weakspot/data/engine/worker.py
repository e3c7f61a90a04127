"""What runs inside a worker in another process, and what goes there and comes back, as bytes.

Both ends are weakspot's own processes.
"""

import os
import pickle
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Protocol

from weakspot.core.errors import ConfigError, WeakspotError
from weakspot.core.machine import available_cores
from weakspot.core.registry import OWN_DISTRIBUTION
from weakspot.core.roles import BatchWork
from weakspot.data.engine.chunks import AheadOfTime

MAX_SHOWN = 200


class Packer(Protocol):
    """Turns objects into bytes: `pickle`, or a library that packs functions by value too."""

    def dumps(self, thing: object, /) -> bytes:
        """Return the object as bytes."""


@dataclass(frozen=True, kw_only=True)
class ChunkResult:
    """What came of a chunk.

    Args:
        results: one per item, or one per batch; up to the first error.
        error: of the item or batch after these results.
        seconds: how long the worker was busy.
    """

    results: list[Any]
    error: BaseException | None = None
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class _BareError:
    """An error that only comes back without its constructor."""

    kind: type[BaseException]
    args: tuple[Any, ...]
    state: dict[str, Any]

    def rebuild(self) -> BaseException:
        error = self.kind.__new__(self.kind, *self.args)
        error.__dict__.update(self.state)
        return error


def pack(thing: object, packer: Packer, *, what: str) -> bytes:
    """Return something as bytes that can be sent to a worker.

    Raises:
        ConfigError: if it cannot be sent.
    """
    try:
        return packer.dumps(thing)
    except Exception as error:
        raise ConfigError(
            f"{what} cannot be sent to another process: {type(error).__name__}: {error}.",
            given=shorten(thing),
            fix="Derive the part from weakspot.core.registry.Sendable, use functions of a module, or choose the engine local.",
        ) from error


def unpack(content: bytes) -> Any:
    return pickle.loads(content)  # noqa: S301 - written by weakspot itself, never by a user's file


def pack_result(work: Callable[[list[Any]], None], packer: Packer) -> bytes:
    results: list[Any] = []
    error: object = None
    started = time.monotonic()
    try:
        work(results)
    except BaseException as problem:  # noqa: BLE001 - raised where the item was given
        error = _make_portable(problem, packer)
    seconds = time.monotonic() - started
    try:
        return packer.dumps((results, error, seconds))
    except Exception as problem:  # noqa: BLE001 (an optimisation on the insides of another library)
        what = f"What comes of an item cannot be sent back: {type(problem).__name__}: {problem}."
        return packer.dumps(([], ConfigError(what, fix="Choose the engine local."), seconds))


def unpack_result(content: bytes) -> ChunkResult:
    results, error, seconds = unpack(content)
    return ChunkResult(
        results=results,
        error=error.rebuild() if isinstance(error, _BareError) else error,
        seconds=seconds,
    )


def shorten(thing: object) -> str:
    """Return something as a text that is short enough for a message."""
    text = repr(thing)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def _make_portable(error: BaseException, packer: Packer) -> object:
    error.add_note(f"In a worker:\n{traceback.format_exc()}")
    bare = _BareError(kind=type(error), args=error.args, state=dict(error.__dict__))
    for candidate in (error, bare):
        try:
            back = unpack(packer.dumps(candidate))
            back = back.rebuild() if isinstance(back, _BareError) else back
        except Exception:  # noqa: BLE001 (an onnxruntime without these operators computes nothing wrong)
            continue
        if type(back).__name__ == type(error).__name__ and str(back) == str(error):
            return candidate
    return WeakspotError(f"A worker failed: {type(error).__name__}: {error}.")


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
        except Exception as error:  # noqa: BLE001 (whatever it is, the processor can compute)
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
