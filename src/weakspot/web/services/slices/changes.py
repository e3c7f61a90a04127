"""What people change in a run: slices they make, names they correct, and what they dismiss; proven like everything else."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from weakspot.core.decisions import Decision, DecisionKind
from weakspot.core.errors import DataError
from weakspot.core.evidence import Evidence
from weakspot.core.failures import describe_criterion
from weakspot.core.run import RunRecord
from weakspot.core.slices import FailureSlice
from weakspot.pipeline import loop
from weakspot.pipeline.classifier_facts import classifier_facts
from weakspot.pipeline.halves import used_rows
from weakspot.pipeline.stage_clock import finished, new_record
from weakspot.pipeline.verdicts import Asking
from weakspot.project.project import Project
from weakspot.web.services.workspace import Workspace

Change = Callable[[RunRecord], RunRecord]
OWN_THRESHOLD = "own_threshold"
"""Parameter of a slice whose threshold a person chose, instead of the one that is best on the discovery half."""
NEW_RUN = ""


def decision(slice_id: str, kind: DecisionKind, *, by: str, reason: str = "") -> Decision:
    return Decision(
        slice_id=slice_id,
        kind=kind,
        by=by,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        reason=reason,
    )


def with_slices(
    workspace: Workspace,
    slices: Sequence[FailureSlice],
    *,
    by: str,
    run_id: str | None = None,
    reason: str = "",
) -> RunRecord:
    """Add a person's slices to a run (the newest by default; a new one if there is none) and prove all of its slices anew.

    What the confirmation half was ever asked is in the ledger, whether it became a slice or not, and stays there when a slice is
    taken out again. Saying the same twice changes nothing.

    Args:
        workspace: the project.
        slices: what the person accepts; found on the discovery half.
        by: who accepts them.
        run_id: which run; the newest by default, or a new one if that is of other samples.
        reason: in that person's words.
    """

    def add(record: RunRecord) -> RunRecord:
        known = {found.slice_id for found in record.slices}
        accepted = {
            one.slice_id for one in record.decisions if one.kind is DecisionKind.ACCEPTED
        } - set(record.dismissed())
        wanted = {found.slice_id: found for found in slices}
        new = tuple(found for name, found in wanted.items() if name not in known)
        restored = [
            decision(name, DecisionKind.RESTORED, by=by)
            for name in wanted
            if name in record.dismissed()
        ]
        made = [
            decision(name, DecisionKind.ACCEPTED, by=by, reason=reason)
            for name in wanted
            if name not in accepted
        ]
        decided = (*record.decisions, *restored, *made)
        return prove(
            workspace,
            record.model_copy(update={"slices": (*record.slices, *new), "decisions": decided}),
            by=by,
        )

    return change_run(workspace, add, run_id=run_id or _run_to_add_to(workspace))


def prove(workspace: Workspace, record: RunRecord, *, by: str = "") -> RunRecord:
    """Return a run whose slices are measured on the confirmation half, with verdicts read off the ledger.

    Only slices that these samples were never asked about cost anything. What people dismissed keeps the figures that it had, but
    it neither stands for slices with nearly the same members nor explains others, so that a changed slice can take the place of
    the one that it was made from.
    """
    dismissed = record.dismissed()
    kept = record.model_copy(
        update={"slices": tuple(one for one in record.slices if one.slice_id not in dismissed)}
    )
    verified = loop.verify_slices(
        kept,
        workspace.samples_for(record),
        workspace.project.settings,
        workspace.criterion,
        asking=Asking(ledger=workspace.ledger, source="browser", by=by),
    )
    # Whatever explained a dismissed slice may be gone.
    set_aside = [
        entry.model_copy(update={"explained": None})
        for entry in record.evidence
        if entry.slice_id in dismissed
    ]
    by_slice = {entry.slice_id: entry for entry in (*verified.evidence, *set_aside)}
    ordered = tuple(
        by_slice[found.slice_id] for found in record.slices if found.slice_id in by_slice
    )
    return record.model_copy(update={"evidence": ordered, "trees": verified.trees})


def change_run(workspace: Workspace, change: Change, *, run_id: str | None = None) -> RunRecord:
    """Load a run, change it and save it, with nobody else in between.

    Args:
        workspace: the project.
        change: gets the run as it is on disk now.
        run_id: which run; the newest by default. Without any run, or with an empty text, a new one is started.
    """
    with workspace.editing() as project:
        record = None if run_id == NEW_RUN else workspace.record(run_id)
        record = record or _first_run(workspace, project)
        changed = finished(change(record), stages=record.stages)
        project.store.runs.save(changed)
    return changed


def n_decisions(workspace: Workspace) -> tuple[str, int]:
    """Return how much people decided in the newest run; it grows whenever somebody decides something."""
    record = workspace.record()
    return ("", 0) if record is None else (record.run_id, len(record.decisions))


def slice_of(record: RunRecord, slice_id: str) -> FailureSlice:
    """Return a slice of a run.

    Raises:
        DataError: if it has none of that id.
    """
    found = next((one for one in record.slices if one.slice_id == slice_id), None)
    if found is None:
        raise DataError(f"The run {record.run_id} has no slice {slice_id!r}.", given=slice_id)
    return found


def evidence_of(record: RunRecord, slice_id: str) -> Evidence | None:
    return next((entry for entry in record.evidence if entry.slice_id == slice_id), None)


def _run_to_add_to(workspace: Workspace) -> str | None:
    record = workspace.record()
    if record is None:
        return NEW_RUN
    pairs = workspace.prepared.halves(workspace.project.settings, workspace.criterion)
    today = workspace.once(
        "discovery digests", lambda: {discovery.digest() for discovery, _ in pairs}
    )
    return (
        record.run_id if all(found.found_on.digest in today for found in record.slices) else NEW_RUN
    )


def _first_run(workspace: Workspace, project: Project) -> RunRecord:
    samples, settings = workspace.samples, project.settings
    record = new_record(
        settings,
        inputs=workspace.prepared.inputs,
        criterion=describe_criterion(workspace.criterion),
    )
    every = used_rows(samples, settings)
    facts = classifier_facts(samples.dataset, every, workspace.criterion)
    return record.model_copy(update={"classifier": facts})
