"""A project that is run again whenever its samples, its model or its settings change."""

from weakspot.app.watching.journal import TurnKind, WatchJournal, WatchTurn
from weakspot.app.watching.watcher import Watcher, WatchRequest

__all__ = ["TurnKind", "WatchJournal", "WatchRequest", "WatchTurn", "Watcher"]
