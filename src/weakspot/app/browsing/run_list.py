"""The runs of a project in a few figures each, and what was made of one as long as it stays as it is."""

from collections.abc import Callable
from pathlib import PurePath
from typing import TypeVar, cast

from weakspot.app.browsing.view import View
from weakspot.app.browsing.workspace import Workspace
from weakspot.core.errors import StoreError
from weakspot.core.run import RunRecord
from weakspot.store.runs import RECORD_FILE

MOST_KEPT = 200
REPORT_FILE = "report.html"
Made = TypeVar("Made")
_Kept = dict[tuple[str, str], tuple[tuple[int, int, int], object]]


class RunView(View):
    """One run.

    Args:
        run_id: time and hash.
        started: ISO 8601, UTC.
        command: what was asked for.
        n_slices: how many were found.
        n_published: how many of them were confirmed and not dismissed.
        is_repaired: whether a repair was measured.
        has_report: whether its report was written.
    """

    run_id: str
    started: str
    command: str
    n_slices: int
    n_published: int
    is_repaired: bool
    has_report: bool


class RunsView(View):
    """All runs, newest first."""

    runs: list[RunView]


def run_list(workspace: Workspace) -> RunsView:
    """Return all runs, newest first; every one is read once for each state that it is in."""
    ids = workspace.project.store.runs.run_ids()
    return RunsView(runs=[_with_report(workspace, made_of_run(workspace, run_id, "in short", _in_short)) for run_id in ids[::-1]])


def has_report(workspace: Workspace, run_id: str) -> bool:
    """Return whether the report of a run was written."""
    return (workspace.project.store.runs.folder / run_id / REPORT_FILE).is_file()


def made_of_run(workspace: Workspace, run_id: str, name: str, make: Callable[[RunRecord], Made]) -> Made:
    """Return something that follows from a run alone; it is made again only when the run was written again.

    Raises:
        StoreError: if there is no such run.
    """
    runs = workspace.project.store.runs
    if run_id not in runs.run_ids():
        raise StoreError("There is no such run.", given=run_id, fix="Choose one of those on the overview.")
    facts = (runs.folder / run_id / RECORD_FILE).stat()
    state = facts.st_ino, facts.st_mtime_ns, facts.st_size
    kept = cast("_Kept", workspace.once("made of runs", dict))
    found = kept.get((run_id, name))
    if found is not None and found[0] == state:
        return cast("Made", found[1])
    made = make(runs.load(run_id))
    while len(kept) >= MOST_KEPT:
        kept.pop(next(iter(kept)), None)
    kept[run_id, name] = state, made
    return made


def _in_short(record: RunRecord) -> RunView:
    return RunView(
        run_id=record.run_id,
        started=record.started,
        command=_shown_command(record.command),
        n_slices=len(record.slices),
        n_published=len(record.published()),
        is_repaired=any(outcome.arms for outcome in record.repairs),
        has_report=False,
    )


def _shown_command(command: str) -> str:
    """Return what was typed, of paths on the server only the last part."""
    return " ".join(PurePath(word).name if "/" in word else word for word in command.split())


def _with_report(workspace: Workspace, run: RunView) -> RunView:
    return run.model_copy(update={"has_report": has_report(workspace, run.run_id)})
