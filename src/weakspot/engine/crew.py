"""Workers in other processes do parcels of consecutive items; what comes of them is given in order.

Nothing is lost with a worker but the parcels it had: they go to others. Whoever was there when a worker died is tried again without
company, then item by item, so that one item that kills workers is told from those that were only near.
"""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from weakspot.core.errors import WeakspotError
from weakspot.engine.intake import Intake
from weakspot.engine.parcels import Pace, Parcel
from weakspot.engine.travel import Packer, packed, shown, unpacked_outcome

TICK_SECONDS = 1.0
MOST_FAILED_STARTS = 3
LONG_WAIT_SECONDS = 30.0

logger = logging.getLogger(__name__)

Death = Literal["worker", "machine"]


class Worker(Protocol):
    """A process that does parcels, one call after another."""

    def start(self, order: bytes) -> "Future[bytes]":
        """Send the order; done when the worker is ready."""

    def begin(self, number: int, items: bytes) -> None:
        """Let the worker start on a parcel ahead of time."""

    def finish(self, number: int) -> "Future[bytes]":
        """Return the outcome of a parcel that was begun."""

    def do(self, number: int, items: bytes) -> "Future[bytes]":
        """Return the outcome of a parcel."""

    def death(self, error: BaseException) -> Death | None:
        """Say whether an error of a call means that the worker, or its whole machine, is gone."""

    def stop(self) -> None:
        """End the worker at once."""


class Staff(Protocol):
    """Where workers come from."""

    @property
    def packer(self) -> Packer:
        """What turns items into bytes."""

    def n_wanted(self) -> int:
        """Return how many workers there should be now."""

    def hire(self) -> Worker:
        """Return a new worker, which may have to wait for its place."""


@dataclass(eq=False)
class _Post:
    """A worker with what it has been given."""

    worker: Worker
    is_ready: bool = False
    is_alone: bool = False
    begun: deque[Parcel] = field(default_factory=deque)
    finishing: list[Parcel] = field(default_factory=list)

    @property
    def load(self) -> int:
        return len(self.begun) + len(self.finishing)


class Crew:
    """Does all items with workers of a staff.

    Args:
        staff: where workers come from.
        order: what every worker is told at its start.
        pace: how large parcels are, and how many a worker has at a time.
        lost: stands in for an item on which workers die.
    """

    def __init__(self, staff: Staff, order: object, pace: Pace, lost: Callable[[Any], Any] | None) -> None:
        self._staff = staff
        self._order = packed(order, staff.packer, what="The work")
        self._pace = pace
        self._lost = lost
        self._posts: list[_Post] = []
        self._calls: dict[Future[bytes], tuple[_Post, Parcel | None]] = {}
        self._window: deque[Parcel] = deque()
        self._backlog: deque[Parcel] = deque()
        self._suspects: deque[Parcel] = deque()
        self._n_failed_starts = 0
        self._waiting_since: float | None = None

    def results(self, intake: Intake[Any]) -> Iterator[Any]:
        """Yield all results in order; the first error is raised in its turn."""
        try:
            while True:
                self._take(intake)
                if not self._window:
                    break
                self._collect(wait_for_more=not self._window[0].is_done)
                self._staff_up(intake)
                self._hand_out()
                if self._window[0].is_done:
                    parcel = self._window.popleft()
                    yield from parcel.results
                    if parcel.error is not None:
                        raise parcel.error
        finally:
            for post in self._posts:
                post.worker.stop()
        intake.raise_error()

    def _take(self, intake: Intake[Any]) -> None:
        n_workers = max(1, self._staff.n_wanted())
        while len(self._backlog) < n_workers and self._pace.has_room(self._window, n_workers):
            parcel = self._pace.next_parcel(intake)
            if parcel is None:
                return
            self._window.append(parcel)
            self._backlog.append(parcel)

    def _staff_up(self, intake: Intake[Any]) -> None:
        n_wanted = max(1, self._staff.n_wanted())
        if intake.is_over:
            n_wanted = min(n_wanted, sum(not parcel.is_done for parcel in self._window))
        for post in [post for post in self._posts if not post.is_ready][: max(0, len(self._posts) - n_wanted)]:
            self._dismiss(post)
        while len(self._posts) < n_wanted:
            post = _Post(self._staff.hire())
            self._posts.append(post)
            self._calls[post.worker.start(self._order)] = (post, None)

    def _hand_out(self) -> None:
        ready = [post for post in self._posts if post.is_ready]
        for post in ready:
            if self._suspects and not post.load:
                self._give(post, self._suspects.popleft(), is_alone=True)
        while self._backlog and not self._suspects:
            free = [post for post in ready if not post.is_alone and post.load < self._pace.parcels_each]
            if not free:
                break
            self._give(min(free, key=lambda post: post.load), self._backlog.popleft(), is_alone=False)
        for post in ready:
            if post.begun and not post.finishing:
                self._finish_oldest(post)

    def _give(self, post: _Post, parcel: Parcel, *, is_alone: bool) -> None:
        post.is_alone = is_alone
        items = packed(parcel.items, self._staff.packer, what="An item")
        if not self._pace.n_ahead:
            post.finishing.append(parcel)
            self._calls[post.worker.do(parcel.number, items)] = (post, parcel)
            return
        post.worker.begin(parcel.number, items)
        post.begun.append(parcel)
        if len(post.begun) > self._pace.n_ahead:
            self._finish_oldest(post)

    def _finish_oldest(self, post: _Post) -> None:
        parcel = post.begun.popleft()
        post.finishing.append(parcel)
        self._calls[post.worker.finish(parcel.number)] = (post, parcel)

    def _collect(self, *, wait_for_more: bool) -> None:
        if not self._calls:
            return
        done = wait(self._calls, timeout=TICK_SECONDS if wait_for_more else 0.0, return_when=FIRST_COMPLETED).done
        self._tell_of_waiting()
        for call in sorted(done, key=lambda call: call.exception() is not None):
            if call not in self._calls:
                continue
            post, parcel = self._calls.pop(call)
            error = call.exception()
            if error is not None:
                self._bury(post, error, was_starting=parcel is None)
            elif parcel is None:
                self._welcome(post, call.result())
            else:
                post.finishing.remove(parcel)
                post.is_alone = post.is_alone and bool(post.load)
                self._settle(parcel, call.result())

    def _welcome(self, post: _Post, content: bytes) -> None:
        outcome = unpacked_outcome(content)
        if outcome.error is not None:
            raise outcome.error
        post.is_ready = True
        self._n_failed_starts = 0

    def _settle(self, parcel: Parcel, content: bytes) -> None:
        outcome = unpacked_outcome(content)
        if isinstance(outcome.error, MemoryError) and self._lost is not None:
            self._suspect(parcel, "worker")
            return
        parcel.results, parcel.error, parcel.is_done = outcome.results, outcome.error, True
        self._pace.learn(len(parcel.items), outcome.seconds)

    def _bury(self, post: _Post, error: BaseException, *, was_starting: bool) -> None:
        death = post.worker.death(error)
        if death is None:
            raise error
        parcels = [*post.finishing, *post.begun]
        logger.info("A worker died (%s); %d parcels are tried again.", death, len(parcels))
        self._dismiss(post)
        if was_starting and death == "worker":
            self._n_failed_starts += 1
            if self._n_failed_starts >= MOST_FAILED_STARTS:
                raise WeakspotError(
                    "Workers die again and again before they can start.",
                    given=shown(error),
                    fix="Try the engine local to see why: not enough memory for the model, or a library that crashes.",
                )
        for parcel in parcels:
            self._suspect(parcel, death)

    def _suspect(self, parcel: Parcel, death: Death) -> None:
        parcel.count(death)
        if not parcel.is_given_up:
            self._suspects.append(parcel)
        elif len(parcel.items) > 1:
            place = self._window.index(parcel)
            singles = self._pace.singles(parcel)
            del self._window[place]
            for single in reversed(singles):
                self._window.insert(place, single)
            self._suspects.extend(singles)
        else:
            self._give_up(parcel)

    def _give_up(self, parcel: Parcel) -> None:
        parcel.is_done = True
        if self._lost is not None:
            parcel.results = [self._lost(parcel.items[0])]
            return
        parcel.error = WeakspotError(
            "Workers died again and again on one item, also when nothing else was under way.",
            given=shown(parcel.items[0]),
            fix="Take it out, or give workers more memory.",
        )

    def _dismiss(self, post: _Post) -> None:
        self._posts.remove(post)
        self._calls = {call: told for call, told in self._calls.items() if told[0] is not post}
        post.worker.stop()

    def _tell_of_waiting(self) -> None:
        if any(post.is_ready for post in self._posts):
            self._waiting_since = None
            return
        self._waiting_since = self._waiting_since or time.monotonic()
        if time.monotonic() - self._waiting_since > LONG_WAIT_SECONDS:
            logger.warning("Still waiting for a place for workers; see whether the cluster has any to give.")
            self._waiting_since = time.monotonic()
