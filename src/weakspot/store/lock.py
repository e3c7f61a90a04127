"""One writer at a time in a project folder."""

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from weakspot.core.errors import StoreError

WAIT_SECONDS = 0.05


@contextmanager
def exclusive(path: Path, *, patience: float = 0.0) -> Iterator[None]:
    """Hold the lock file; the operating system lets go of it when the process ends, however it ends.

    Args:
        path: of the lock file.
        patience: seconds to wait for another writer.

    Raises:
        StoreError: if another writer holds it for longer than that, with its process id, host and start.
    """
    with path.open("a+b") as stream:
        _take(stream, path, time.monotonic() + patience)
        _sign(stream)
        try:
            yield
        finally:
            stream.truncate(0)


def _take(stream: IO[bytes], path: Path, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise _held_by(path) from None
            time.sleep(WAIT_SECONDS)
        else:
            return


def _sign(stream: IO[bytes]) -> None:
    holder = {
        "process": os.getpid(),
        "host": socket.gethostname(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    stream.truncate(0)
    stream.write(json.dumps(holder).encode())
    stream.flush()


def _held_by(path: Path) -> StoreError:
    try:
        holder = json.loads(path.read_bytes())
        who = f"process {holder['process']} on {holder['host']}, since {holder['since']}"
    except (OSError, ValueError, KeyError, TypeError):
        who = "another process that has just started"
    return StoreError(
        f"The project is being written by {who}.",
        where=str(path.parent.parent),
        fix="Wait until it has finished or end it; the lock vanishes with that process, there is nothing to delete.",
    )
