"""Progress bars in a notebook: one line a stage, in one output that is written over."""

import sys
import time
from collections.abc import Callable
from html import escape
from typing import Protocol

from weakspot.core.run import StageProgress, no_stage_progress

REDRAW_SECONDS = 0.2


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
        self._stages: dict[str, tuple[int, int | None]] = {}
        self._shown: Shown | None = None
        self._drawn = 0.0

    def __call__(self, stage: str, done: int, total: int | None) -> None:
        """Show how far a stage is; not more often than eyes can follow."""
        if total == 0 and stage not in self._stages:
            return
        is_new = stage not in self._stages
        self._stages[stage] = (done, total)
        now = self._clock()
        if is_new or done == total or now - self._drawn >= REDRAW_SECONDS:
            self._drawn = now
            self._draw()

    def _draw(self) -> None:
        page = HtmlPage("".join(_bar(name, *far) for name, far in self._stages.items()))
        if self._shown is None:
            self._shown = self._show(page)
        else:
            self._shown.update(page)


class HtmlPage(str):
    """HTML that a notebook shows as such."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


def _bar(stage: str, done: int, total: int | None) -> str:
    """Return one line of HTML.

    >>> _bar("embed", 3, 4)
    '<div><progress value="3" max="4"></progress> embed: 3 of 4</div>'
    """
    if total is None:
        return f"<div><progress></progress> {escape(stage)}: {done:,}</div>"
    bar = f'<progress value="{done}" max="{max(total, 1)}"></progress>'
    return f"<div>{bar} {escape(stage)}: {done:,} of {total:,}</div>"


def usual_progress() -> StageProgress:
    """Return bars where this runs in a notebook, and silence elsewhere."""
    if "ipykernel" not in sys.modules:
        return no_stage_progress
    from IPython.core.getipython import get_ipython
    from IPython.display import display

    if get_ipython() is None:
        return no_stage_progress
    return NotebookProgress(lambda page: display(page, display_id=True))
