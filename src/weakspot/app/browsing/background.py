"""Things that take too long for a request: made beside it, once, and there when they are asked for again."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from weakspot.app.browsing.workspace import Workspace

Made = TypeVar("Made")


class MadeBeside(Generic[Made]):
    """Something that is being made in a thread of its own.

    Args:
        make: makes it; what it raises is raised again by whoever asks.
    """

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make
        self._made: list[Made] = []
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def get(self, *, patience: float) -> Made | None:
        """Return it, None if it is not ready after so many seconds."""
        self._thread.join(timeout=patience)
        if self._error is not None:
            raise self._error
        return self._made[0] if self._made else None

    def _run(self) -> None:
        try:
            self._made.append(self._make())
        except Exception as error:  # noqa: BLE001 - raised again where it is asked for
            self._error = error


def made_beside(workspace: Workspace, name: str, make: Callable[[], Made], *, patience: float) -> Made | None:
    """Return something that is made once for the current tables, None while it is not ready.

    Args:
        workspace: who keeps it.
        name: what it is called.
        make: makes it, in a thread of its own; nobody else waits for it.
        patience: seconds that this request waits.
    """
    started = workspace.once(f"beside: {name}", lambda: MadeBeside(make))
    assert isinstance(started, MadeBeside)
    found: Made | None = started.get(patience=patience)
    return found
