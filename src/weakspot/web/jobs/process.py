"""One process that works: started with a request, watched line by line, ended with patience; and signs of life on disk."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from pydantic import JsonValue

WORKER = (sys.executable, "-m", "weakspot.web.jobs.worker")
GRACE_SECONDS = 10.0
LONGEST_TAIL = 4000


class WorkerProcess:
    """A process of one work, with a process group of its own.

    Args:
        command: what to start.
        request: its first line of input; the input stays open until the process has ended.
        inherited: numbers of open files that it shall hold as long as it lives.
    """

    def __init__(
        self,
        command: Sequence[str],
        request: dict[str, JsonValue],
        *,
        inherited: Sequence[int] = (),
    ) -> None:
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `ended`, after the process
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
            pass_fds=tuple(inherited),
        )
        assert self._process.stdin is not None
        # If it has ended already, `ended` says how.
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()

    @property
    def process_id(self) -> int:
        """Return its id, for people who look at the machine."""
        return self._process.pid

    def messages(self) -> Iterator[dict[str, JsonValue]]:
        """Yield what it says until it ends; lines that are no JSON object are passed over."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                found = json.loads(line)
            except ValueError:
                continue
            if isinstance(found, dict):
                yield found

    def wait(self) -> tuple[int, str]:
        """Wait for its end; return its exit code (negative: the signal that ended it) and the tail of what it wrote as errors."""
        code = self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - LONGEST_TAIL))
        tail = self._errors.read().decode(errors="replace")
        self._errors.close()
        return code, tail

    def end(self) -> None:
        """Ask it to stop, then tell it to, then make it; returns at once."""
        threading.Thread(target=self._end, daemon=True, name="end of a work").start()

    def _end(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self._process.pid, number)
            except ProcessLookupError:
                return
            try:
                self._process.wait(timeout=GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                continue
            return


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
    if not path.exists():
        return False
    hold = Hold(path)
    try:
        return not hold.take()
    finally:
        hold.let_go()
