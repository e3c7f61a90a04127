"""Undoing what people did with slices. Tests that were made go on counting, whatever is undone."""

from collections.abc import Sequence

from pydantic import JsonValue

from weakspot.core.decisions import DecisionKind
from weakspot.core.run import RunRecord
from weakspot.core.slices import SliceName
from weakspot.web.services.slices import changes
from weakspot.web.services.slices.editing import add_decisions, replace_slice
from weakspot.web.services.workspace import Workspace

UNDONE = "Undone"


def names_of_slice(record: RunRecord, slice_id: str) -> list[dict[str, JsonValue]]:
    """Return the names of a slice as they can be kept."""
    return [one.model_dump(mode="json") for one in changes.slice_of(record, slice_id).names]


def give_names_back(
    workspace: Workspace,
    run_id: str,
    slice_id: str,
    names: Sequence[dict[str, JsonValue]],
    *,
    by: str,
) -> None:
    """Give a slice the names that it had."""

    def change(record: RunRecord) -> RunRecord:
        found = changes.slice_of(record, slice_id)
        before = "" if found.name is None else f"Before: “{found.name.contrast}”"
        had = tuple(SliceName.model_validate(one) for one in names)
        decided = changes.decision(
            slice_id, DecisionKind.RENAMED, by=by, reason=f"{UNDONE}. {before}".strip()
        )
        renamed = replace_slice(record, found.model_copy(update={"names": had}))
        return add_decisions(renamed, [decided])

    changes.change_run(workspace, change, run_id=run_id)


def swap_slices(
    workspace: Workspace, run_id: str, *, back: Sequence[str], away: Sequence[str], by: str
) -> None:
    """Take slices back, and set others aside, in one step; what is already so stays so."""

    def change(record: RunRecord) -> RunRecord:
        known = {found.slice_id for found in record.slices}
        dismissed = set(record.dismissed())
        decided = [
            changes.decision(one, DecisionKind.RESTORED, by=by, reason=UNDONE)
            for one in back
            if one in known & dismissed
        ]
        decided += [
            changes.decision(one, DecisionKind.DISMISSED, by=by, reason=UNDONE)
            for one in away
            if one in known - dismissed
        ]
        return changes.prove(workspace, add_decisions(record, decided), by=by)

    changes.change_run(workspace, change, run_id=run_id)
