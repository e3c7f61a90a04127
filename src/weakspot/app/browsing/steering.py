"""What people change in a run: slices they say, words they put right, and what they dismiss; proven like everything else."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from weakspot.app import loop
from weakspot.app.browsing.workspace import Workspace
from weakspot.app.looks import LookLog
from weakspot.app.project import Project
from weakspot.app.records import finished, new_record
from weakspot.core.decisions import Decision, DecisionKind
from weakspot.core.errors import DataError
from weakspot.core.evidence import Evidence
from weakspot.core.failures import describe_criterion
from weakspot.core.run import RunRecord
from weakspot.core.slices import FailureSlice
from weakspot.verify.looks import TESTED, with_looks

Change = Callable[[RunRecord], RunRecord]


def decision(slice_id: str, kind: DecisionKind, *, by: str, reason: str = "") -> Decision:
    """Return a decision that is made now."""
    return Decision(slice_id=slice_id, kind=kind, by=by, time=datetime.now(UTC).isoformat(timespec="seconds"), reason=reason)


def with_slices(workspace: Workspace, slices: Sequence[FailureSlice], *, by: str, run_id: str | None = None) -> RunRecord:
    """Add a person's slices to a run (the newest by default; a new one if there is none) and prove all of its slices anew.

    Whatever was asked of the confirmation half by hand counts as tested, whether it became a slice or not.
    """
    accepted = tuple(decision(found.slice_id, DecisionKind.ACCEPTED, by=by) for found in slices)

    def add(record: RunRecord) -> RunRecord:
        known = {found.slice_id for found in record.slices}
        new = tuple({found.slice_id: found for found in slices if found.slice_id not in known}.values())
        changed = record.model_copy(update={"slices": (*record.slices, *new), "decisions": (*record.decisions, *accepted)})
        return proven(workspace, changed)

    return changed_run(workspace, add, run_id=run_id)


def proven(workspace: Workspace, record: RunRecord) -> RunRecord:
    """Return a run whose slices are measured on the confirmation half, all questions by hand counted.

    What people dismissed keeps the figures that it had. It neither stands for slices with nearly the same members nor explains
    others, so that a changed slice can take the place of the one it was made from; but its test was made, and counts.
    """
    settings = workspace.project.settings
    dismissed = record.dismissed()
    kept = record.model_copy(update={"slices": tuple(one for one in record.slices if one.slice_id not in dismissed)})
    verified = loop.verify_slices(kept, workspace.samples_for(record), settings, workspace.criterion)
    set_aside = [entry for entry in record.evidence if entry.slice_id in dismissed]
    own = {(found.class_name, str(found.parameters.get("phrase", ""))) for found in record.slices}
    looks = [
        *(
            look.p_value
            for look in LookLog(workspace.project.store).at(workspace.confirmation_digest)
            if (look.class_name, look.phrase) not in own
        ),
        *(entry.p_value if entry.gap > 0 else 1.0 for entry in set_aside if entry.verdict in TESTED),
    ]
    alpha = float(str(settings.verify.parameters.get("alpha", 0.05)))
    measured = with_looks(verified.evidence, looks, alpha=alpha)
    by_slice = {entry.slice_id: entry for entry in (*measured, *_counted_with(set_aside, measured))}
    ordered = tuple(by_slice[found.slice_id] for found in record.slices if found.slice_id in by_slice)
    return record.model_copy(update={"evidence": ordered})


def _counted_with(set_aside: Sequence[Evidence], measured: Sequence[Evidence]) -> list[Evidence]:
    """Return evidence of dismissed slices with today's number of tests."""
    n_tested = {entry.measured_on.digest: entry.n_tested for entry in measured}
    return [
        entry.model_copy(update={"n_tested": n_tested.get(entry.measured_on.digest, entry.n_tested), "explained": None})
        for entry in set_aside
    ]


def changed_run(workspace: Workspace, change: Change, *, run_id: str | None = None) -> RunRecord:
    """Load a run, change it and save it, with nobody else in between.

    Args:
        workspace: the project.
        change: gets the run as it is on disk now.
        run_id: which run; the newest by default. Without any run a new one is started.
    """
    with workspace.editing() as project:
        record = workspace.record(run_id) or _first_run(workspace, project)
        changed = finished(change(record), stages=record.stages)
        project.store.runs.save(changed)
    return changed


def slice_of(record: RunRecord, slice_id: str) -> FailureSlice:
    """Return a slice of a run.

    Raises:
        DataError: if it has none of that id.
    """
    found = next((one for one in record.slices if one.slice_id == slice_id), None)
    if found is None:
        raise DataError(f"The run {record.run_id} has no slice {slice_id!r}.", given=slice_id)
    return found


def _first_run(workspace: Workspace, project: Project) -> RunRecord:
    criterion = describe_criterion(workspace.criterion)
    return new_record(project.settings, inputs=workspace.prepared.inputs, criterion=criterion)
