"""What the terminal shows: progress on the error stream, results on the output stream."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from weakspot.core.errors import WeakspotError
from weakspot.core.run import StageProgress


def report_error(error: WeakspotError) -> None:
    """Write an error as a person reads it, without a traceback."""
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    console.print(f"error: {error.what}", style="bold red", markup=False)
    for name, value in (("where", error.where), ("given", error.given), ("to do", error.fix)):
        if value is not None:
            console.print(f"  {name}: {value}", markup=False)


def print_json(value: Any) -> None:
    """Write a value as JSON to the output stream."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n")


def say(text: str = "") -> None:
    """Write a line to the output stream."""
    Console(soft_wrap=True, highlight=False).print(text, markup=False)


def remark(text: str) -> None:
    """Write a line to the error stream, beside progress; nothing for no text."""
    if text:
        Console(stderr=True, soft_wrap=True, highlight=False).print(text, markup=False)


class ProgressDisplay:
    """One bar per stage."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Show how far a stage is."""
        if stage not in self._tasks:
            self._tasks[stage] = self._bars.add_task(stage, total=total)
        self._bars.update(self._tasks[stage], completed=done, total=total)


class ProgressLines:
    """A line on the error stream whenever a stage has come another quarter of the way, for logs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._said: dict[str, int] = {}

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Say how far a stage is, if it is worth a line."""
        quarter = 4 * done // total if total else 0
        if quarter > self._said.get(stage, -1):
            self._said[stage] = quarter
            self._console.print(f"{stage}: {done} of {total if total is not None else 'an unknown number'}", highlight=False)


@contextmanager
def showing_progress() -> Iterator[StageProgress]:
    """Give a progress callback that draws bars on the error stream, or writes lines where that is no terminal."""
    columns = (
        TextColumn("{task.description:<22}"),
        BarColumn(bar_width=28),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(compact=True),
    )
    console = Console(stderr=True)
    try:
        with Progress(*columns, console=console, refresh_per_second=4, disable=not console.is_terminal) as bars:
            yield ProgressDisplay(bars) if console.is_terminal else ProgressLines(console)
    except KeyboardInterrupt:
        console.print("Interrupted. What was finished is kept; the same command continues from there.")
        raise
