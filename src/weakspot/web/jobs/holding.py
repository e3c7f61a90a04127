"""Signs of life on disk: a lock that its holders' end lets go of, however they end."""

import fcntl
import os
from pathlib import Path


class Hold:
    """A lock file that this process holds, and with it every process that inherits its number.

    Args:
        path: of the lock file; made if need be.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def take(self) -> bool:
        """Return whether nobody else holds it; from then on we do."""
        try:
            fcntl.flock(self.number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def let_go(self) -> None:
        """Let go; processes that inherited it hold on."""
        os.close(self.number)


def is_held(path: Path) -> bool:
    """Return whether somebody alive holds a lock file."""
    if not path.exists():
        return False
    hold = Hold(path)
    try:
        return not hold.take()
    finally:
        hold.let_go()
