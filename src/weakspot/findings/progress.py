"""How far things are: bars in a notebook, a line on a terminal, both written over and with the time left."""

import sys
import time
from collections.abc import Callable
from html import escape
from typing import Protocol, TextIO

from weakspot.core.pace import Pace, next_pace
from weakspot.core.run import StageProgress, no_stage_progress

REDRAW_SECONDS = 0.2
CLEARED = "\r\x1b[K"
"""The start of the line, and nothing on it."""


class Shown(Protocol):
    """An output of a notebook that can be written over."""

    def update(self, page: object) -> None:
        """Show something else in its place."""


class NotebookProgress:
    """Draws a bar for every stage that has something to do.

    Args:
        show: shows HTML and returns the output.
        clock: tells seconds.
    """

    def __init__(
        self, show: Callable[[str], Shown], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._show = show
        self._clock = clock
        self._stages: dict[str, Pace] = {}
        self._shown: Shown | None = None
        self._drawn = 0.0

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Show how far a stage is; not more often than eyes can follow."""
        if total == 0 and stage not in self._stages:
            return
        is_new = stage not in self._stages
        now = self._clock()
        self._stages[stage] = next_pace(self._stages.get(stage), stage, done, total, now)
        if is_new or done == total or now - self._drawn >= REDRAW_SECONDS:
            self._drawn = now
            self._draw()

    def _draw(self) -> None:
        page = HtmlPage("".join(_bar(pace) for pace in self._stages.values()))
        if self._shown is None:
            self._shown = self._show(page)
        else:
            self._shown.update(page)


class HtmlPage(str):
    """HTML that a notebook shows as such."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


class TerminalProgress:
    """Writes one line a stage, over and over.

    Args:
        stream: the terminal.
        clock: tells seconds.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._pace: Pace | None = None
        self._written = 0.0

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Write how far a stage is; not more often than eyes can follow."""
        if total == 0:
            return
        before, now = self._pace, self._clock()
        is_new = before is None or before.stage != stage
        self._pace = next_pace(before, stage, done, total, now)
        is_over = done == total and (is_new or before is None or before.done != done)
        if is_new or is_over or now - self._written >= REDRAW_SECONDS:
            self._written = now
            self._stream.write(f"{CLEARED}{how_far(self._pace)}" + ("\n" if is_over else ""))
            self._stream.flush()


def how_far(pace: Pace) -> str:
    """Return in words how far a stage is.

    >>> how_far(Pace(stage="embed", started=0, done_first=0, done=30, total=90, told=10))
    'embed: 30 of 90, 20 s left'
    """
    if pace.total is None:
        return f"{pace.stage}: {pace.done:,}"
    left = pace.seconds_left(pace.told)
    return f"{pace.stage}: {pace.done:,} of {pace.total:,}" + (
        "" if left is None else f", {left:,} s left"
    )


def _bar(pace: Pace) -> str:
    """Return one line of HTML."""
    known = "" if pace.total is None else f' value="{pace.done}" max="{max(pace.total, 1)}"'
    return f"<div><progress{known}></progress> {escape(how_far(pace))}</div>"


def usual_progress() -> StageProgress:
    """Return bars where this runs in a notebook, a line where the error stream is a terminal, and silence elsewhere."""
    if "ipykernel" in sys.modules:
        from IPython.core.getipython import get_ipython
        from IPython.display import display

        if get_ipython() is not None:
            return NotebookProgress(lambda page: display(page, display_id=True))
    return TerminalProgress(sys.stderr) if sys.stderr.isatty() else no_stage_progress
