"""Workers in other processes do chunks of consecutive items; what comes of them is given in order.

Nothing is lost with a worker but the chunks it had: they go to others. Whoever was there when a worker died is tried again without
company, then item by item, so that one item that kills workers is known from those that were only near.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from weakspot.core.errors import WeakspotError
from weakspot.data.engine.chunks import Chunk, ChunkQueue, Pace
from weakspot.data.engine.worker import Dumps, Order, pack, shorten, unpack_result

TICK_SECONDS = 1.0
MAX_FAILED_STARTS = 3
LONG_WAIT_SECONDS = 30.0

logger = logging.getLogger(__name__)

Death = Literal["worker", "machine"]


class Worker(Protocol):
    """A process that does chunks, one call after another."""

    def start(self, order: bytes) -> "Future[bytes]":
        """Send the order; done when the worker is ready."""

    def begin(self, number: int, items: bytes) -> None:
        """Let the worker start on a chunk ahead of time."""

    def finish(self, number: int) -> "Future[bytes]":
        """Return the result of a chunk that was begun."""

    def do(self, number: int, items: bytes) -> "Future[bytes]":
        """Return the result of a chunk."""

    def death(self, error: BaseException) -> Death | None:
        """Say whether an error of a call means that the worker, or its whole machine, is gone."""

    def stop(self) -> None:
        """End the worker at once."""


class Workers(Protocol):
    """Where workers come from."""

    @property
    def dumps(self) -> Dumps:
        """What turns items into bytes."""

    def n_wanted(self) -> int:
        """Return how many workers there should be now."""

    def start(self) -> Worker:
        """Return a new worker, which may have to wait for its place."""


@dataclass(eq=False)
class _Slot:
    """A worker with what it has been given."""

    worker: Worker
    is_ready: bool = False
    is_alone: bool = False
    begun: deque[Chunk] = field(default_factory=deque)
    finishing: list[Chunk] = field(default_factory=list)

    @property
    def load(self) -> int:
        return len(self.begun) + len(self.finishing)


class WorkerPool:
    """Does all items with workers.

    Args:
        workers: where workers come from.
        order: what every worker is given at its start.
        pace: how large chunks are, and how many a worker has at a time.
        lost: stands in for an item on which workers die.
    """

    def __init__(
        self, workers: Workers, order: Order, pace: Pace, lost: Callable[[Any], Any] | None
    ) -> None:
        self._workers = workers
        self._order = pack(order, workers.dumps, what="The work")
        self._pace = pace
        self._lost = lost
        self._slots: list[_Slot] = []
        self._calls: dict[Future[bytes], tuple[_Slot, Chunk | None]] = {}
        self._window: deque[Chunk] = deque()
        self._backlog: deque[Chunk] = deque()
        self._suspects: deque[Chunk] = deque()
        self._n_failed_starts = 0
        self._waiting_since: float | None = None

    def results(self, intake: ChunkQueue[Any]) -> Iterator[Any]:
        """Yield all results in order; the first error is raised in its turn."""
        try:
            while True:
                self._take(intake)
                if not self._window:
                    break
                self._collect(wait_for_more=not self._window[0].is_done)
                self._start_workers(intake)
                self._send_chunks()
                if self._window[0].is_done:
                    chunk = self._window.popleft()
                    yield from chunk.results
                    if chunk.error is not None:
                        raise chunk.error
        finally:
            for slot in self._slots:
                slot.worker.stop()
        intake.raise_error()

    def _take(self, intake: ChunkQueue[Any]) -> None:
        n_workers = max(1, self._workers.n_wanted())
        while len(self._backlog) < n_workers and self._pace.has_room(self._window, n_workers):
            chunk = self._pace.next_chunk(intake)
            if chunk is None:
                return
            self._window.append(chunk)
            self._backlog.append(chunk)

    def _start_workers(self, intake: ChunkQueue[Any]) -> None:
        n_wanted = max(1, self._workers.n_wanted())
        if intake.is_over:
            n_wanted = min(n_wanted, sum(not chunk.is_done for chunk in self._window))
        for slot in [slot for slot in self._slots if not slot.is_ready][
            : max(0, len(self._slots) - n_wanted)
        ]:
            self._stop(slot)
        while len(self._slots) < n_wanted:
            slot = _Slot(self._workers.start())
            self._slots.append(slot)
            self._calls[slot.worker.start(self._order)] = (slot, None)

    def _send_chunks(self) -> None:
        ready = [slot for slot in self._slots if slot.is_ready]
        for slot in ready:
            if self._suspects and not slot.load:
                self._send(slot, self._suspects.popleft(), is_alone=True)
        while self._backlog and not self._suspects:
            free = [
                slot for slot in ready if not slot.is_alone and slot.load < self._pace.chunks_each
            ]
            if not free:
                break
            self._send(
                min(free, key=lambda slot: slot.load), self._backlog.popleft(), is_alone=False
            )
        for slot in ready:
            if slot.begun and not slot.finishing:
                self._finish_oldest(slot)

    def _send(self, slot: _Slot, chunk: Chunk, *, is_alone: bool) -> None:
        slot.is_alone = is_alone
        items = pack(chunk.items, self._workers.dumps, what="An item")
        if not self._pace.n_ahead:
            slot.finishing.append(chunk)
            self._calls[slot.worker.do(chunk.number, items)] = (slot, chunk)
            return
        slot.worker.begin(chunk.number, items)
        slot.begun.append(chunk)
        if len(slot.begun) > self._pace.n_ahead:
            self._finish_oldest(slot)

    def _finish_oldest(self, slot: _Slot) -> None:
        chunk = slot.begun.popleft()
        slot.finishing.append(chunk)
        self._calls[slot.worker.finish(chunk.number)] = (slot, chunk)

    def _collect(self, *, wait_for_more: bool) -> None:
        if not self._calls:
            return
        done = wait(
            self._calls, timeout=TICK_SECONDS if wait_for_more else 0.0, return_when=FIRST_COMPLETED
        ).done
        self._warn_of_waiting()
        for call in sorted(done, key=lambda call: call.exception() is not None):
            if call not in self._calls:
                continue
            slot, chunk = self._calls.pop(call)
            error = call.exception()
            if error is not None:
                self._handle_death(slot, error, was_starting=chunk is None)
            elif chunk is None:
                self._mark_ready(slot, call.result())
            else:
                slot.finishing.remove(chunk)
                slot.is_alone = slot.is_alone and bool(slot.load)
                self._settle(chunk, call.result())

    def _mark_ready(self, slot: _Slot, content: bytes) -> None:
        _, error, _ = unpack_result(content)
        if error is not None:
            raise error
        slot.is_ready = True
        self._n_failed_starts = 0

    def _settle(self, chunk: Chunk, content: bytes) -> None:
        results, error, seconds = unpack_result(content)
        if isinstance(error, MemoryError) and self._lost is not None:
            self._suspect(chunk, "worker")
            return
        chunk.results, chunk.error, chunk.is_done = results, error, True
        self._pace.learn(len(chunk.items), seconds)

    def _handle_death(self, slot: _Slot, error: BaseException, *, was_starting: bool) -> None:
        death = slot.worker.death(error)
        if death is None:
            raise error
        chunks = [*slot.finishing, *slot.begun]
        logger.info("A worker died (%s); %d chunks are tried again.", death, len(chunks))
        self._stop(slot)
        if was_starting and death == "worker":
            self._n_failed_starts += 1
            if self._n_failed_starts >= MAX_FAILED_STARTS:
                raise WeakspotError(
                    "Workers die again and again before they can start.",
                    given=shorten(error),
                    fix="Try the engine local to see why: not enough memory for the model, or a library that crashes.",
                )
        for chunk in chunks:
            self._suspect(chunk, death)

    def _suspect(self, chunk: Chunk, death: Death) -> None:
        chunk.count(death)
        if not chunk.is_given_up:
            self._suspects.append(chunk)
        elif len(chunk.items) > 1:
            place = self._window.index(chunk)
            singles = self._pace.singles(chunk)
            del self._window[place]
            for single in reversed(singles):
                self._window.insert(place, single)
            self._suspects.extend(singles)
        else:
            self._give_up(chunk)

    def _give_up(self, chunk: Chunk) -> None:
        chunk.is_done = True
        if self._lost is not None:
            chunk.results = [self._lost(chunk.items[0])]
            return
        chunk.error = WeakspotError(
            "Workers died again and again on one item, also when nothing else was under way.",
            given=shorten(chunk.items[0]),
            fix="Take it out, or give workers more memory.",
        )

    def _stop(self, slot: _Slot) -> None:
        self._slots.remove(slot)
        self._calls = {call: who for call, who in self._calls.items() if who[0] is not slot}
        slot.worker.stop()

    def _warn_of_waiting(self) -> None:
        if any(slot.is_ready for slot in self._slots):
            self._waiting_since = None
            return
        self._waiting_since = self._waiting_since or time.monotonic()
        if time.monotonic() - self._waiting_since > LONG_WAIT_SECONDS:
            logger.warning("Still waiting for room for workers; see whether the cluster has any.")
            self._waiting_since = time.monotonic()
