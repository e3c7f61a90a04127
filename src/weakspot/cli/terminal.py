"""What the terminal shows: results on the output stream; progress, errors and the log on the error stream.

Light: what draws is loaded when there is something to show.
"""

import dataclasses
import errno
import json
import logging
import os
import platform
import re
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import TYPE_CHECKING, Any

from weakspot import __version__
from weakspot.core.errors import WeakspotError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

    from weakspot.core.run import StageProgress

log = logging.getLogger(__name__)
KEPT = "What was finished is kept: the same command continues from there."
ADVICE: dict[int, str] = {
    errno.ENOSPC: f"Make room on that disk, then run the same command again. {KEPT}",
    errno.EDQUOT: f"Make room within your quota, then run the same command again. {KEPT}",
    errno.EROFS: f"Make the folder writable or choose another one. {KEPT}",
    errno.EACCES: f"Allow this user to read and write there. {KEPT}",
    errno.EPERM: f"Allow this user to read and write there. {KEPT}",
    errno.EMFILE: f"Raise the limit of open files (ulimit -n). {KEPT}",
    errno.EIO: f"Check the disk or the network folder. {KEPT}",
    errno.ENOMEM: f"Free some memory, or lower batch_size. {KEPT}",
    errno.ESTALE: f"The network folder went away: mount it again. {KEPT}",
}
_WRITTEN_NUMBER = re.compile(r"\berrno (\d+)\b", re.IGNORECASE)
_QUIET: ContextVar[bool] = ContextVar("quiet", default=False)
_PART_WRITTEN = re.compile(r"\d+ requested and \d+ written")


def start_logging(verbosity: int) -> None:
    """Write what loggers below `weakspot` say to the error stream: 1 what is done, 2 or more also details."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    package = logging.getLogger("weakspot")
    package.addHandler(handler)
    package.setLevel(logging.INFO if verbosity == 1 else logging.DEBUG)
    package.propagate = False
    # Arguments are left out: an address among them may hold a password.
    log.info(
        "weakspot %s, Python %s, %s", __version__, platform.python_version(), platform.system()
    )


def _console(*, stderr: bool = False) -> "Console":
    from rich.console import Console

    return Console(stderr=stderr, soft_wrap=True, highlight=False)


def report_error(error: WeakspotError) -> None:
    """Write an error as a person reads it; its traceback goes to the log."""
    log.info("The traceback of the error:", exc_info=error)
    console = _console(stderr=True)
    console.print(f"error: {error.what}", style="bold red", markup=False)
    for name, value in (("where", error.where), ("given", error.given), ("to do", error.fix)):
        if value is not None:
            console.print(f"  {name}: {value}", markup=False)


def print_json(value: Any) -> None:
    """Write a value as JSON to the output stream."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")


def show(result: Any, lines: Iterable[str], *, as_json: bool) -> None:
    """Write a result: a record, dataclass or plain value as JSON, or its lines (made only if they are shown)."""
    if not as_json:
        say(lines if isinstance(lines, str) else "\n".join(lines))
    elif hasattr(result, "model_dump"):
        print_json(result.model_dump(mode="json"))
    elif dataclasses.is_dataclass(result) and not isinstance(result, type):
        print_json(dataclasses.asdict(result))
    else:
        print_json(result)


def say(text: str = "") -> None:
    """Write a line to the output stream."""
    _console().print(text, markup=False)


def remark(text: str) -> None:
    """Write a line to the error stream, beside progress; nothing for no text."""
    if text:
        _console(stderr=True).print(text, markup=False)


def describe_os_error(error: OSError) -> WeakspotError:
    """Return the error to show; libraries that write the number into their text only are understood too.

    >>> describe_os_error(OSError("Error writing bytes to file. Detail: [errno 28] No space left on device")).what
    'The operating system refused: No space left on device.'
    """
    number = error.errno if error.errno is not None else _number_in(str(error))
    why = os.strerror(number) if number is not None else str(error)
    where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else None
    fix = KEPT if number is None else ADVICE.get(number)
    return WeakspotError(f"The operating system refused: {why}.", where=where, fix=fix)


def _number_in(text: str) -> int | None:
    """Return the error number that a text means; numpy says only that a part was written, as a full disk does."""
    if _PART_WRITTEN.search(text):
        return errno.ENOSPC
    written = _WRITTEN_NUMBER.search(text)
    return int(written[1]) if written else None


def describe_memory_error() -> WeakspotError:
    """Return the error for a process that gets no more memory."""
    return WeakspotError(
        "There is not enough memory.",
        fix=f"Lower batch_size, or use a machine with more memory. {KEPT}",
    )


class ProgressDisplay:
    """One bar per stage; stages with nothing to do have none."""

    def __init__(self, bars: "Progress") -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Show how far a stage is."""
        if stage not in self._tasks:
            if total == 0:
                return
            self._tasks[stage] = self._bars.add_task(stage, total=total, what="left")
        what = "done" if done == total else "left"
        self._bars.update(self._tasks[stage], completed=done, total=total, what=what)


class ProgressLines:
    """One line on the error stream when a stage begins, for logs; the log of `-v` says how far it is."""

    def __init__(self, console: "Console") -> None:
        self._console = console
        self._begun: set[str] = set()

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Say that a stage begins, if it has something to do."""
        if stage in self._begun or total == 0:
            return
        self._begun.add(stage)
        amount = "begun" if total is None else f"{done:,} of {total:,}" if done else f"{total:,}"
        self._console.print(f"{stage}: {amount}", highlight=False, markup=False)


def be_quiet(*, asked: bool) -> None:
    """Show no progress from now on, or show it again."""
    _QUIET.set(asked)


@contextmanager
def showing_progress() -> Iterator["StageProgress"]:
    """Give a progress callback that draws bars on the error stream, or writes lines where that is no terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description:<18}", markup=False),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        TextColumn("{task.fields[what]}"),
    )
    console = Console(stderr=True)
    try:
        with Progress(
            *columns,
            console=console,
            refresh_per_second=4,
            disable=not console.is_terminal or _QUIET.get(),
        ) as bars:
            display = ProgressDisplay(bars) if console.is_terminal else ProgressLines(console)

            def progress(stage: str, done: int, total: int | None) -> None:
                if done == total:
                    log.info("%s: %d done", stage, done)
                else:
                    log.debug("%s: %d of %s", stage, done, total)
                if not _QUIET.get():
                    display(stage, done, total)

            yield progress
    except KeyboardInterrupt:
        console.print(
            "Interrupted. What was finished is kept; the same command continues from there."
        )
        raise


@contextmanager
def stopping_on_signals() -> Iterator[list[int]]:
    """Let SIGINT and SIGTERM end what is within by KeyboardInterrupt; the list that is given holds the signal once it came.

    A shell starts commands in the background with SIGINT ignored, which is inherited: without a handler they never end.
    """
    received: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
