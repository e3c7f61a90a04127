"""A watcher: turn after turn, with longer pauses while something is wrong; one at a time in a project."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from weakspot.app.watching.journal import TurnKind, WatchJournal, WatchTurn
from weakspot.app.watching.turning import TurnRequest, take_turn
from weakspot.core.errors import StoreError, WeakspotError
from weakspot.core.run import StageProgress, no_stage_progress
from weakspot.store import lock
from weakspot.store.project import ProjectStore

LOCK_FILE = "watch.lock"
LONGEST_PAUSE = 3600.0
MOST_DOUBLINGS = 6


@dataclass(frozen=True, kw_only=True)
class WatchRequest:
    """How a project is watched.

    Args:
        turn: what every turn does.
        every: seconds between turns.
    """

    turn: TurnRequest
    every: float = 60.0


class Watcher:
    """Watches one project.

    Args:
        request: how.
        progress: told how far every stage is.
        tell: told every turn.
        pause: waits for so many seconds; the monotonic clock decides, so that a clock that is set does no harm.
    """

    def __init__(
        self,
        request: WatchRequest,
        *,
        progress: StageProgress = no_stage_progress,
        tell: Callable[[WatchTurn], None] = lambda _: None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._request = request
        self._progress = progress
        self._tell = tell
        self._pause = pause
        self._n_failed = 0

    def once(self) -> WatchTurn:
        """Take one turn; an error of it is raised after it was written down."""
        with self._alone() as journal:
            try:
                return self._told(journal, self._turn(journal))
            except WeakspotError as error:
                journal.add(_failed(error))
                raise

    def forever(self) -> None:
        """Take turns until somebody interrupts; an error ends a turn, not the watcher."""
        with self._alone() as journal:
            while True:
                self.one_of_many(journal)
                self._pause(self.next_pause)

    def one_of_many(self, journal: WatchJournal) -> WatchTurn:
        """Take a turn that may fail."""
        try:
            turn = self._turn(journal)
        except (WeakspotError, OSError) as error:
            self._n_failed += 1
            turn = _failed(error)
        else:
            self._n_failed = 0
        return self._told(journal, turn)

    @property
    def next_pause(self) -> float:
        """Return the seconds until the next turn: twice as long after every failure, up to an hour."""
        every = self._request.every
        return min(every * 2.0 ** min(self._n_failed, MOST_DOUBLINGS), max(every, LONGEST_PAUSE))

    def _turn(self, journal: WatchJournal) -> WatchTurn:
        return take_turn(self._request.turn, journal.last_run(), progress=self._progress)

    def _told(self, journal: WatchJournal, turn: WatchTurn) -> WatchTurn:
        self._tell(turn)
        if turn.kind is not TurnKind.UNCHANGED:
            journal.add(turn)
        return turn

    @contextmanager
    def _alone(self) -> Iterator[WatchJournal]:
        data = ProjectStore.create(self._request.turn.folder).data
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


def _failed(error: WeakspotError | OSError) -> WatchTurn:
    said = str(error) if isinstance(error, WeakspotError) else f"The operating system refused: {error.strerror or error}."
    return WatchTurn(kind=TurnKind.ERROR, time=datetime.now(UTC).isoformat(timespec="seconds"), error=" ".join(said.split()))
