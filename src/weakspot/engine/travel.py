"""What goes to workers in other processes and comes back, as bytes. Both ends are weakspot's own processes."""

import pickle
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from weakspot.core.errors import ConfigError, WeakspotError

MOST_SHOWN = 200


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
            fix="Derive the part from weakspot.core.sending.Sendable, use functions of a module, or choose the engine local.",
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
    except Exception as problem:  # noqa: BLE001 - becomes an error of the caller
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
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def _make_portable(error: BaseException, packer: Packer) -> object:
    error.add_note(f"In a worker:\n{traceback.format_exc()}")
    bare = _BareError(kind=type(error), args=error.args, state=dict(error.__dict__))
    for candidate in (error, bare):
        try:
            back = unpack(packer.dumps(candidate))
            back = back.rebuild() if isinstance(back, _BareError) else back
        except Exception:  # noqa: BLE001 - the next form is tried
            continue
        if type(back).__name__ == type(error).__name__ and str(back) == str(error):
            return candidate
    return WeakspotError(f"A worker failed: {type(error).__name__}: {error}.")
