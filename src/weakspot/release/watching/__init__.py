"""A project that is run again whenever its samples, its model or its settings change."""

from weakspot.release.watching.journal import RoundKind, WatchJournal, WatchRound
from weakspot.release.watching.watcher import Watcher, WatchRequest

__all__ = ["RoundKind", "WatchJournal", "WatchRequest", "WatchRound", "Watcher"]
