"""What runs inside a worker in another process, and what goes there and comes back, as bytes.

Both ends are weakspot's own processes.
"""

import os
import pickle
import time
import traceback
from collections.abc import Callable
from functools import partial
from importlib.metadata import version
from typing import Any

from weakspot.core.errors import ConfigError, WeakspotError
from weakspot.core.machine import available_cores
from weakspot.core.registry import OWN_DISTRIBUTION
from weakspot.core.roles import BatchWork
from weakspot.data.engine.chunks import AheadOfTime, OneByOne

MAX_SHOWN = 200


Dumps = Callable[[object], bytes]
"""Turns objects into bytes: that of `pickle`, or of a library that packs functions by value too."""

Order = Callable[[], AheadOfTime[Any, Any] | OneByOne[Any, Any]]
"""What a worker is to do, as it is sent: it makes what does the chunks."""


def batch_order(build: Callable[[], BatchWork[Any, Any]], *, n_threads: int) -> Order:
    """Return the order to build some work once and to run it on every chunk.

    Args:
        build: builds the work.
        n_threads: threads that prepare; 0 means one per core of the worker's machine.
    """
    return partial(_build_work, build, n_threads)


def _build_work(build: Callable[[], BatchWork[Any, Any]], n_threads: int) -> AheadOfTime[Any, Any]:
    return AheadOfTime(build(), n_threads or available_cores())


def pack(thing: object, dumps: Dumps, *, what: str) -> bytes:
    """Return something as bytes that can be sent to a worker.

    Raises:
        ConfigError: if it cannot be sent.
    """
    try:
        return dumps(thing)
    except Exception as error:
        raise ConfigError(
            f"{what} cannot be sent to another process: {type(error).__name__}: {error}.",
            given=shorten(thing),
            fix="Derive the part from weakspot.core.registry.Sendable, use functions of a module, or choose the engine local.",
        ) from error


def unpack(content: bytes) -> Any:
    return pickle.loads(content)  # noqa: S301 - written by weakspot itself, never by a user's file


def pack_result(work: Callable[[list[Any]], None], dumps: Dumps) -> bytes:
    """Return what comes of a chunk as bytes: results up to the first error, that error, and how long it took."""
    results: list[Any] = []
    error: object = None
    started = time.monotonic()
    try:
        work(results)
    except BaseException as problem:  # noqa: BLE001 - raised where the item was given
        error = _make_portable(problem, dumps)
    seconds = time.monotonic() - started
    try:
        return dumps((results, error, seconds))
    except Exception as problem:  # noqa: BLE001 (an optimisation on the insides of another library)
        what = f"What comes of an item cannot be sent back: {type(problem).__name__}: {problem}."
        return dumps(([], ConfigError(what, fix="Choose the engine local."), seconds))


def unpack_result(content: bytes) -> tuple[list[Any], BaseException | None, float]:
    """Return what came of a chunk: results up to the first error, that error, and seconds that the worker was busy."""
    results, error, seconds = unpack(content)
    return results, _rebuilt(error), seconds


def shorten(thing: object) -> str:
    """Return something as a text that is short enough for a message."""
    text = repr(thing)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def _make_portable(error: BaseException, dumps: Dumps) -> object:
    error.add_note(f"In a worker:\n{traceback.format_exc()}")
    # Some errors only come back without their constructor.
    bare = partial(_bare_error, type(error), error.args, dict(error.__dict__))
    for candidate in (error, bare):
        try:
            back = _rebuilt(unpack(dumps(candidate)))
        except Exception:  # noqa: BLE001 (an onnxruntime without these operators computes nothing wrong)
            continue
        if type(back).__name__ == type(error).__name__ and str(back) == str(error):
            return candidate
    return WeakspotError(f"A worker failed: {type(error).__name__}: {error}.")


def _bare_error(
    kind: type[BaseException], args: tuple[Any, ...], state: dict[str, Any]
) -> BaseException:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


def _rebuilt(error: Any) -> BaseException | None:
    back: BaseException | None = error() if isinstance(error, partial) else error
    return back


class WorkerSide:
    """A worker's place of work. Calls come one at a time; a later chunk is begun before an earlier one is finished."""

    def __init__(self, dumps: Dumps) -> None:
        self._dumps = dumps
        self._runner: Any = None
        self._begun: dict[int, Any] = {}

    def start(self, order: bytes, callers_version: str) -> bytes:
        """Take an order; the result says which process this is."""

        def work(results: list[Any]) -> None:
            if callers_version != own_version():
                what = f"A worker has weakspot {own_version()}, the caller has {callers_version}."
                raise ConfigError(what, fix="Install the same version everywhere.")
            opened: Order = unpack(order)
            self._runner = opened()
            results.append(os.getpid())

        return pack_result(work, self._dumps)

    def begin(self, number: int, items: bytes) -> None:
        """Start on a chunk without waiting for anything; what goes wrong is raised when it is finished."""
        try:
            if self._runner is None:
                raise ConfigError("A worker was given a chunk before its order.")
            self._begun[number] = self._runner.prepare(unpack(items))
        except Exception as error:  # noqa: BLE001 (raised where the chunk is finished)
            self._begun[number] = error

    def finish(self, number: int) -> bytes:

        def work(results: list[Any]) -> None:
            begun = self._begun.pop(number)
            if isinstance(begun, Exception):
                raise begun
            for result in self._runner.results(begun):
                results.append(result)

        return pack_result(work, self._dumps)

    def do(self, number: int, items: bytes) -> bytes:
        self.begin(number, items)
        return self.finish(number)


def own_version() -> str:
    return version(OWN_DISTRIBUTION)
