"""A watcher: round after round, with longer pauses while something is wrong; one at a time in a project."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from weakspot.core.errors import StoreError, WeakspotError
from weakspot.core.run import StageProgress, no_stage_progress
from weakspot.release.watching.journal import RoundKind, WatchJournal, WatchRound
from weakspot.release.watching.round import RoundRequest, run_round
from weakspot.store import lock
from weakspot.store.project import ProjectStore

log = logging.getLogger(__name__)

LOCK_FILE = "watch.lock"
LONGEST_PAUSE = 3600.0
MOST_DOUBLINGS = 6


@dataclass(frozen=True, kw_only=True)
class WatchRequest:
    """How a project is watched.

    Args:
        round_request: what every round does.
        every: seconds between rounds.
    """

    round_request: RoundRequest
    every: float = 60.0


class Watcher:
    """Watches one project.

    Args:
        request: how.
        progress: called with how far every stage is.
        tell: called with every round.
        pause: waits for so many seconds; the monotonic clock decides, so that a clock that is set does no harm.
    """

    def __init__(
        self,
        request: WatchRequest,
        *,
        progress: StageProgress = no_stage_progress,
        tell: Callable[[WatchRound], None] = lambda _: None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._request = request
        self._progress = progress
        self._tell = tell
        self._pause = pause
        self._n_failed = 0

    def once(self) -> WatchRound:
        """Do one round; an error of it is raised after it was recorded."""
        with self._alone() as journal:
            try:
                return self._report(journal, self._round(journal))
            except WeakspotError as error:
                journal.add(_failed_round(error))
                raise

    def forever(self) -> None:
        """Do rounds until somebody interrupts; an error ends a round, not the watcher."""
        with self._alone() as journal:
            while True:
                self.one_of_many(journal)
                self._pause(self.next_pause)

    def one_of_many(self, journal: WatchJournal) -> WatchRound:
        """Do a round that may fail."""
        try:
            done = self._round(journal)
        except (WeakspotError, OSError) as error:
            self._n_failed += 1
            log.info("A round failed %d times in a row.", self._n_failed, exc_info=error)
            done = _failed_round(error)
        else:
            self._n_failed = 0
        return self._report(journal, done)

    @property
    def next_pause(self) -> float:
        """Return the seconds until the next round: twice as long after every failure, up to an hour."""
        every = self._request.every
        return min(every * 2.0 ** min(self._n_failed, MOST_DOUBLINGS), max(every, LONGEST_PAUSE))

    def _round(self, journal: WatchJournal) -> WatchRound:
        return run_round(self._request.round_request, journal.last_run(), progress=self._progress)

    def _report(self, journal: WatchJournal, done: WatchRound) -> WatchRound:
        self._tell(done)
        if done.kind is not RoundKind.UNCHANGED:
            journal.add(done)
        return done

    @contextmanager
    def _alone(self) -> Iterator[WatchJournal]:
        data = ProjectStore.create(self._request.round_request.folder).data
        with ExitStack() as stack:
            try:
                stack.enter_context(lock.exclusive(data / LOCK_FILE))
            except StoreError as error:
                raise StoreError(
                    "Another watcher works on this project.",
                    where=str(data.parent),
                    given=error.what,
                    fix="End it first; the lock vanishes with that process, there is nothing to delete.",
                ) from error
            yield WatchJournal(data)


def _failed_round(error: WeakspotError | OSError) -> WatchRound:
    message = (
        str(error)
        if isinstance(error, WeakspotError)
        else f"The operating system refused: {error.strerror or error}."
    )
    return WatchRound(
        kind=RoundKind.ERROR,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        error=" ".join(message.split()),
    )
