"""Runs as pages read them: each is read from disk once for every state that it is in."""

from typing import cast

from weakspot.app.browsing.workspace import Workspace
from weakspot.core.errors import StoreError
from weakspot.core.run import RunRecord
from weakspot.store.runs import RECORD_FILE

MOST_KEPT = 8
NOT_WRITTEN = "The project has no run yet."

Signature = tuple[int, int, int]
Kept = dict[str, tuple[Signature, RunRecord]]


def run_ids(workspace: Workspace) -> list[str]:
    """Return the ids of all runs, newest first."""
    return workspace.project.store.runs.run_ids()[::-1]


def run_of(workspace: Workspace, run_id: str | None = None) -> RunRecord:
    """Return a run as it is on disk now, the newest by default.

    Raises:
        StoreError: if there is none of that id, or none at all.
    """
    known = run_ids(workspace)
    chosen = known[0] if run_id is None and known else run_id
    if chosen is None:
        raise StoreError(NOT_WRITTEN, fix="Say something of a class, or start a run on the overview.")
    if chosen not in known:
        raise StoreError("There is no such run.", given=chosen, fix="Choose one of those on the overview.")
    kept = cast("Kept", workspace.once("runs as read", dict))
    signature = _signature(workspace, chosen)
    found = kept.get(chosen)
    if found is not None and found[0] == signature:
        return found[1]
    record = workspace.project.store.runs.load(chosen)
    while len(kept) >= MOST_KEPT:
        kept.pop(next(iter(kept)), None)
    kept[chosen] = signature, record
    return record


def _signature(workspace: Workspace, run_id: str) -> Signature:
    """Return what changes whenever a run is written: it is always written as a new file."""
    facts = (workspace.project.store.runs.folder / run_id / RECORD_FILE).stat()
    return facts.st_ino, facts.st_mtime_ns, facts.st_size
