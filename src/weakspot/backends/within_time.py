"""A call that may take only so long in all, however slowly its data trickles in."""

import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

Given = TypeVar("Given")
SILENCES = 10.0
"""A whole answer may take this many times as long as a server may be silent."""
USUAL_SILENCE_SECONDS = 60.0


def seconds_for_all(client: Any) -> float:
    """Return how long an answer to an httpx client may take in all."""
    silence = client.timeout.read
    return SILENCES * (USUAL_SILENCE_SECONDS if silence is None else float(silence))


def within(seconds: float, call: Callable[[], Given]) -> Given:
    """Return what a call gives, or its error; one that takes longer is left to itself in a thread that ends with the process.

    Raises:
        TimeoutError: if it takes longer.
    """
    given: queue.SimpleQueue[tuple[Given | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            given.put((call(), None))
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is waited for
            given.put((None, error))

    threading.Thread(target=run, name="weakspot-request", daemon=True).start()
    try:
        result, error = given.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"the answer was not complete after {seconds:g} s") from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value]  # there is no error, so this is what the call gave
