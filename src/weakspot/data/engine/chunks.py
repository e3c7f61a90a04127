"""Consecutive items that go to a worker together, how many of them, and batches that threads prepare ahead of time."""

import os
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Generic, Literal

from weakspot.core.errors import ConfigError
from weakspot.core.machine import waiting
from weakspot.core.roles import BatchWork, Item, Result

LOWEST_PRIORITY = 19


class AheadOfTime(Generic[Item, Result]):
    """Prepares items of later batches in threads while whoever calls `run` is busy with an earlier one.

    Threads that prepare give way to the threads of the model: where both want a core, the model gets it, and preparing fills the
    gaps. When nothing is prepared the model waits, and preparing gets all cores.
    """

    def __init__(self, work: BatchWork[Item, Result], n_threads: int) -> None:
        self._work = work
        self._threads = ThreadPoolExecutor(
            n_threads, thread_name_prefix="weakspot-prepare", initializer=give_way
        )

    def prepare(self, items: Sequence[Item]) -> list[Future[object]]:
        return [self._threads.submit(self._work.prepare, item) for item in items]

    def run(self, prepared: Sequence[Future[object]]) -> Result:
        """Return what comes of a batch; an error of preparing is raised here."""
        with waiting():
            ready = [item.result() for item in prepared]
        return self._work.run(ready)

    def results(self, prepared: Sequence[Future[object]]) -> Iterator[Result]:
        """Yield what comes of a chunk of a worker: it is one batch."""
        yield self.run(prepared)

    def close(self) -> None:
        """Start nothing new; what is under way is not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class OneByOne(Generic[Item, Result]):
    """Applies a function to each item; nothing can be prepared ahead of time."""

    def __init__(self, function: Callable[[Item], Result]) -> None:
        self._function = function

    def prepare(self, items: Sequence[Item]) -> Sequence[Item]:
        return items

    def results(self, prepared: Sequence[Item]) -> Iterator[Result]:
        """Yield what comes of each item of a chunk."""
        return map(self._function, prepared)


def give_way() -> None:
    """Give this thread the lowest priority, where threads have one of their own."""
    if sys.platform == "linux":
        thread = threading.get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, LOWEST_PRIORITY)


class ChunkQueue(Generic[Item]):
    """Takes items from their source; an error of the source waits until everything before it is done."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = iter(items)
        self._error: Exception | None = None
        self.is_over = False

    def take(self, count: int) -> list[Item]:
        """Return the next items; fewer than asked for only at the end."""
        taken: list[Item] = []
        while len(taken) < count and not self.is_over:
            try:
                taken.append(next(self._items))
            except StopIteration:
                self.is_over = True
            except Exception as error:  # noqa: BLE001 (whatever it is, the processor can compute)
                self._error, self.is_over = error, True
        return taken

    def take_batch(self, size: int) -> list[Item]:
        """Return a whole batch, or the last short one; a batch that an error of the source cut off is left out."""
        taken = self.take(size)
        return [] if self._error is not None and len(taken) < size else taken

    def raise_error(self) -> None:
        if self._error is not None:
            raise self._error


def refuse_empty_batches(batch_size: int) -> None:
    """Raise a ConfigError unless a batch holds at least one item."""
    if batch_size < 1:
        raise ConfigError(
            "A batch must hold at least one item.", where="batch_size", given=batch_size
        )


DEATHS_IN_COMPANY = 1
DEATHS_ALONE = 2
MAX_MACHINES = 20
CHUNK_SECONDS = 0.1
MAX_BATCHES_EACH = 4


@dataclass(eq=False)
class Chunk:
    """Consecutive items, and what came of them.

    Args:
        number: no other chunk of this map has it.
        items: what is sent.
        n_deaths: workers that died with it.
        n_machines: machines that were gone with it.
    """

    number: int
    items: list[Any]
    n_deaths: int = 0
    n_machines: int = 0
    is_done: bool = False
    results: list[Any] = field(default_factory=list)
    error: BaseException | None = None

    def count(self, death: Literal["worker", "machine"]) -> None:
        if death == "worker":
            self.n_deaths += 1
        else:
            self.n_machines += 1

    @property
    def is_given_up(self) -> bool:
        """Whether it is not tried again as it is; machines that are taken away say little about an item."""
        return self.n_deaths >= DEATHS_IN_COMPANY + DEATHS_ALONE or self.n_machines >= MAX_MACHINES


class Pace:
    """How large chunks are, and how many a worker has at a time.

    Args:
        chunks_each: most chunks that a worker has.
        n_ahead: chunks that a worker begins before it finishes the one before; 0 if nothing can be done ahead.
    """

    def __init__(self, chunks_each: int, n_ahead: int) -> None:
        self.chunks_each, self.n_ahead = chunks_each, n_ahead
        self._numbers = count()

    def next_chunk(self, intake: ChunkQueue[Any]) -> Chunk | None:
        """Return the next chunk; None when there is none."""
        items = self._next_items(intake)
        return Chunk(next(self._numbers), items) if items else None

    def _next_items(self, intake: ChunkQueue[Any]) -> list[Any]:
        raise NotImplementedError

    def has_room(self, window: Collection[Chunk], n_workers: int) -> bool:
        """Say whether one more chunk may be under way or wait for its turn."""
        raise NotImplementedError

    def learn(self, n_items: int, seconds: float) -> None:
        """Take into account how long a chunk took."""

    def singles(self, chunk: Chunk) -> list[Chunk]:
        """Return a chunk for each item, to be tried alone."""
        return [
            Chunk(next(self._numbers), [item], n_deaths=DEATHS_IN_COMPANY) for item in chunk.items
        ]


class BatchPace(Pace):
    """A chunk is a batch, whatever time it takes: which items share one depends on their order alone.

    Workers prepare the next ones while they run one.

    Args:
        batch_size: items per batch.
        queue_depth: items that may wait for each worker.
    """

    def __init__(self, *, batch_size: int, queue_depth: int) -> None:
        self._batch_size, self._spare = batch_size, queue_depth // batch_size
        chunks_each = min(MAX_BATCHES_EACH, 2 + self._spare)
        super().__init__(chunks_each, n_ahead=max(1, chunks_each - 2))

    def _next_items(self, intake: ChunkQueue[Any]) -> list[Any]:
        return intake.take_batch(self._batch_size)

    def has_room(self, window: Collection[Chunk], n_workers: int) -> bool:
        return len(window) < n_workers * (self.chunks_each + self._spare)


class MapPace(Pace):
    """Chunks start with one item and grow until sending them costs little beside doing them.

    Args:
        queue_depth: items that may wait for each worker.
    """

    def __init__(self, *, queue_depth: int) -> None:
        super().__init__(2, n_ahead=0)
        self._queue_depth = queue_depth
        self._most = max(1, queue_depth // self.chunks_each)
        self._size = 1

    def _next_items(self, intake: ChunkQueue[Any]) -> list[Any]:
        return intake.take(self._size)

    def has_room(self, window: Collection[Chunk], n_workers: int) -> bool:
        return sum(len(chunk.items) for chunk in window) < n_workers * (
            self.chunks_each + self._queue_depth
        )

    def learn(self, n_items: int, seconds: float) -> None:
        fitting = int(CHUNK_SECONDS * n_items / max(seconds, 1e-9))
        self._size = max(1, min(self._most, fitting, 2 * self._size))
