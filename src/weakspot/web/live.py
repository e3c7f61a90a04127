"""Tells open pages that something changed: whatever anybody did, in this process, in another one, or on the command line."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

LOOK_SECONDS = 1.0
STILL_HERE_SECONDS = 15.0
RETRY_MILLISECONDS = 2000


@dataclass(frozen=True, kw_only=True)
class LiveState:
    """What pages compare.

    Args:
        version: number of the last change that people made.
        mark: differs whenever anything does that pages show.
        tables: which samples, under which labels, there are.
    """

    version: int
    mark: str
    tables: str = ""


class LiveChanges:
    """Looks whether something changed, as long as somebody listens; one thread, however many listen.

    Args:
        look: returns the present state; asks the shared state, so that changes of other processes are seen.
        every: seconds between two looks.
    """

    def __init__(self, look: Callable[[], LiveState], *, every: float = LOOK_SECONDS) -> None:
        self._look = look
        self._every = every
        self._guard = threading.Condition()
        self._listeners: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()
        self._state: LiveState | None = None
        self._is_nudged = False
        self._is_closed = False
        self._thread: threading.Thread | None = None

    @property
    def n_listeners(self) -> int:
        with self._guard:
            return len(self._listeners)

    def nudge(self) -> None:
        """Look at once: something changed here."""
        with self._guard:
            self._is_nudged = True
            self._guard.notify_all()

    def close(self) -> None:
        """End all streams; the server is about to stop and must not wait for them."""
        with self._guard:
            self._is_closed = True
            self._guard.notify_all()
            self._wake()

    async def stream(
        self,
        is_welcome: Callable[[], Awaitable[bool]],
        *,
        still_here: float = STILL_HERE_SECONDS,
    ) -> AsyncIterator[str]:
        """Return server-sent events: the state at first and whenever it changes, and a sign of life now and then.

        Args:
            is_welcome: asked before anything is sent; when the session has ended the stream does, too.
            still_here: seconds between signs of life.
        """
        sent: LiveState | None = None
        with self._listening() as woken:
            yield f"retry: {RETRY_MILLISECONDS}\n\n"
            while not self._is_closed and await is_welcome():
                woken.clear()
                state = self._state
                if state is not None and state != sent:
                    told = json.dumps(asdict(state))
                    yield f"event: change\nid: {state.version}\ndata: {told}\n\n"
                    sent = state
                else:
                    yield ": still here\n\n"
                try:
                    await asyncio.wait_for(woken.wait(), still_here)
                except TimeoutError:
                    continue

    @contextmanager
    def _listening(self) -> Iterator[asyncio.Event]:
        listener = asyncio.get_running_loop(), asyncio.Event()
        with self._guard:
            self._listeners.add(listener)
            # Whoever comes must not be told of a state that was seen long ago.
            self._state, self._is_nudged = None, True
            if self._thread is None and not self._is_closed:
                self._thread = threading.Thread(target=self._watch, name="live", daemon=True)
                self._thread.start()
            self._guard.notify_all()
        try:
            yield listener[1]
        finally:
            with self._guard:
                self._listeners.discard(listener)
                self._guard.notify_all()

    def _watch(self) -> None:
        while True:
            with self._guard:
                if not self._is_nudged:
                    self._guard.wait(self._every)
                self._is_nudged = False
                if self._is_closed or not self._listeners:
                    self._thread = None
                    return
            try:
                found = self._look()
            except Exception:  # noqa: BLE001 - a database that is away for a moment; the next look tells
                continue
            with self._guard:
                if found != self._state:
                    self._state = found
                    self._wake()

    def _wake(self) -> None:
        for loop, event in self._listeners:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)
