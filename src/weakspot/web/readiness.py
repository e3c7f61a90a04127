"""How far a server is: it answers at once, while the project is opened beside it."""

import threading
from collections.abc import Callable
from enum import StrEnum

from weakspot.app.browsing.view import View
from weakspot.core.errors import WeakspotError


class ReadyState(StrEnum):
    """Where a server is."""

    PREPARING = "preparing"
    READY = "ready"
    FAILED = "failed"


class HealthView(View):
    """How a server is.

    Args:
        state: whether the project can be looked at.
        message: what is under way, or what went wrong.
    """

    state: ReadyState
    message: str


class Readiness:
    """How far the project is; ready unless something is prepared."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._health = HealthView(state=ReadyState.READY, message="")

    @property
    def health(self) -> HealthView:
        """Return how the server is."""
        with self._guard:
            return self._health

    def prepare(self, make: Callable[[], object]) -> threading.Thread:
        """Do something in a thread of its own; the server is ready when it is done."""
        self._tell(ReadyState.PREPARING, "The project is being opened.")
        thread = threading.Thread(target=self._make, args=(make,), name="prepare", daemon=True)
        thread.start()
        return thread

    def _make(self, make: Callable[[], object]) -> None:
        try:
            make()
        except WeakspotError as error:
            self._tell(ReadyState.FAILED, error.what if error.fix is None else f"{error.what} {error.fix}")
        except Exception:
            self._tell(ReadyState.FAILED, "The project cannot be opened; the server's log says why.")
            raise
        else:
            self._tell(ReadyState.READY, "")

    def _tell(self, state: ReadyState, message: str) -> None:
        with self._guard:
            self._health = HealthView(state=state, message=message)
