"""What people change in a run: slices they say, words they put right, and what they dismiss; proven like everything else."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from weakspot.app import loop
from weakspot.app.browsing.workspace import Workspace
from weakspot.app.looks import Look, LookLog, rounded
from weakspot.app.project import Project
from weakspot.app.records import classifier_facts, finished, new_record
from weakspot.app.wiring import build_verifier
from weakspot.core.dataset import Split
from weakspot.core.decisions import Decision, DecisionKind
from weakspot.core.errors import DataError
from weakspot.core.evidence import Evidence
from weakspot.core.failures import Side, class_problems, describe_criterion
from weakspot.core.run import RunRecord
from weakspot.core.slices import FailureSlice
from weakspot.verify.looks import was_tested, with_looks

Change = Callable[[RunRecord], RunRecord]
OWN_THRESHOLD = "own_threshold"
"""Parameter of a slice whose threshold a person chose, instead of the one that is best on the discovery half."""
DEFAULT_ALPHA = 0.05
NEW_RUN = ""


def decision(slice_id: str, kind: DecisionKind, *, by: str, reason: str = "") -> Decision:
    """Return a decision that is made now."""
    return Decision(slice_id=slice_id, kind=kind, by=by, time=datetime.now(UTC).isoformat(timespec="seconds"), reason=reason)


def with_slices(
    workspace: Workspace, slices: Sequence[FailureSlice], *, by: str, run_id: str | None = None, reason: str = ""
) -> RunRecord:
    """Add a person's slices to a run (the newest by default; a new one if there is none) and prove all of its slices anew.

    Whatever was asked of the confirmation half by hand counts as tested, whether it became a slice or not; and what became a slice
    stays counted when it is taken out again. Saying the same twice changes nothing.

    Args:
        workspace: the project.
        slices: what the person accepts; found on the discovery half.
        by: who accepts them.
        run_id: which run; the newest by default, or a new one if that is of other samples.
        reason: in that person's words.
    """

    def add(record: RunRecord) -> RunRecord:
        known = {found.slice_id for found in record.slices}
        accepted = {one.slice_id for one in record.decisions if one.kind is DecisionKind.ACCEPTED} - set(record.dismissed())
        wanted = {found.slice_id: found for found in slices}
        new = tuple(found for name, found in wanted.items() if name not in known)
        restored = [decision(name, DecisionKind.RESTORED, by=by) for name in wanted if name in record.dismissed()]
        said = [decision(name, DecisionKind.ACCEPTED, by=by, reason=reason) for name in wanted if name not in accepted]
        decided = (*record.decisions, *restored, *said)
        changed = proven(workspace, record.model_copy(update={"slices": (*record.slices, *new), "decisions": decided}))
        write_down(workspace, changed, new, by=by)
        return changed

    return changed_run(workspace, add, run_id=run_id or _run_to_add_to(workspace))


def proven(workspace: Workspace, record: RunRecord) -> RunRecord:
    """Return a run whose slices are measured on the confirmation half, all questions by hand counted.

    Every question counts once: as the test of a slice, or as one more that led to none. What people dismissed keeps the figures
    that it had; its test was made and goes on counting, but it neither stands for slices with nearly the same members nor explains
    others, so that a changed slice can take the place of the one that it was made from.
    """
    settings = workspace.project.settings
    dismissed = record.dismissed()
    kept = record.model_copy(update={"slices": tuple(one for one in record.slices if one.slice_id not in dismissed)})
    verified = loop.verify_slices(kept, workspace.samples_for(record), settings, workspace.criterion)
    digest = _discovery_digest(workspace)
    asked_here = {found.slice_id: found for found in record.slices if found.found_on.digest == digest}
    tested = {
        question_of(asked_here[entry.slice_id]) for entry in verified.evidence if entry.slice_id in asked_here and was_tested(entry)
    }
    asked = _asked_by_hand(workspace, record)
    set_aside = [entry for entry in record.evidence if entry.slice_id in dismissed]
    again = [
        entry
        for entry in set_aside
        if was_tested(entry) and (entry.slice_id not in asked_here or question_of(asked_here[entry.slice_id]) not in asked)
    ]
    here = [1.0] * len(asked - tested) + [entry.p_value for entry in again if entry.slice_id in asked_here]
    swapped = [entry.p_value for entry in again if entry.slice_id not in asked_here]
    elsewhere = {found.slice_id for found in record.slices} - set(asked_here)
    measured = _with_looks(workspace, verified.evidence, here, among=set(asked_here))
    measured = _with_looks(workspace, measured, swapped, among=elsewhere)
    by_slice = {entry.slice_id: entry for entry in (*measured, *_counted_with(set_aside, measured))}
    ordered = tuple(by_slice[found.slice_id] for found in record.slices if found.slice_id in by_slice)
    return record.model_copy(update={"evidence": ordered})


def _with_looks(
    workspace: Workspace, evidence: Sequence[Evidence], looks: Sequence[float], *, among: set[str]
) -> tuple[Evidence, ...]:
    settings = workspace.project.settings
    verifier = build_verifier(settings)
    return with_looks(
        evidence,
        looks,
        alpha=float(getattr(verifier, "alpha", DEFAULT_ALPHA)),
        min_gap=float(getattr(verifier, "min_gap", 0.0)),
        n_turns=2 if settings.verify.scheme == "cross-fit" else 1,
        among=among,
    )


def _counted_with(set_aside: Sequence[Evidence], measured: Sequence[Evidence]) -> list[Evidence]:
    """Return evidence of dismissed slices with today's number of tests; whatever explained them may be gone."""
    n_tested = {entry.measured_on.digest: entry.n_tested for entry in measured}
    return [
        entry.model_copy(update={"n_tested": n_tested.get(entry.measured_on.digest, entry.n_tested), "explained": None})
        for entry in set_aside
    ]


def _asked_by_hand(workspace: Workspace, record: RunRecord) -> set[tuple[str, str, float | None]]:
    """Return every question that people put to the confirmation half, by checking or by accepting."""
    digest = _discovery_digest(workspace)
    accepted = {one.slice_id for one in record.decisions if one.kind is DecisionKind.ACCEPTED}
    own = [found for found in record.slices if found.slice_id in accepted and found.found_on.digest == digest]
    log = LookLog(workspace.project.store).at(workspace.confirmation_digest)
    return {look.question for look in log} | {question_of(found) for found in own}


def question_of(found: FailureSlice) -> tuple[str, str, float | None]:
    """Return which question to the confirmation half a slice is, in the terms of `Look.question`."""
    title = f"no {found.class_name}" if found.side is Side.ABSENT else found.class_name
    phrase = found.parameters.get("phrase")
    if found.rule.kind != "linear" or not isinstance(phrase, str):
        return title, f"slice {found.slice_id}", None
    return title, phrase, rounded(found.rule.threshold) if found.parameters.get(OWN_THRESHOLD) else None


def changed_run(workspace: Workspace, change: Change, *, run_id: str | None = None) -> RunRecord:
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
    """Return what was measured of a slice of a run, None if nothing was."""
    return next((entry for entry in record.evidence if entry.slice_id == slice_id), None)


def _run_to_add_to(workspace: Workspace) -> str | None:
    """Return the run that slices are added to: none if its slices were found on samples that the project no longer holds."""
    record = workspace.record()
    if record is None:
        return NEW_RUN
    pairs = loop.halves(workspace.samples, workspace.project.settings, workspace.criterion)
    today = workspace.once("discovery digests", lambda: {discovery.digest() for discovery, _ in pairs})
    assert isinstance(today, set)
    return record.run_id if all(found.found_on.digest in today for found in record.slices) else NEW_RUN


def _discovery_digest(workspace: Workspace) -> str:
    return str(workspace.once("discovery digest", workspace.discovery.digest))


def write_down(workspace: Workspace, record: RunRecord, slices: Sequence[FailureSlice], *, by: str) -> None:
    """Log new slices as questions that were asked, so that they count for as long as these samples answer."""
    log = LookLog(workspace.project.store)
    known = {look.question for look in log.at(workspace.confirmation_digest)}
    new = [(found, evidence_of(record, found.slice_id)) for found in slices if question_of(found) not in known]
    log.add([_look(workspace, found, entry, by=by) for found, entry in new if entry is not None])


def _look(workspace: Workspace, found: FailureSlice, entry: Evidence, *, by: str) -> Look:
    title, phrase, threshold = question_of(found)
    failures = entry.failures_inside + entry.failures_outside
    others = entry.n_inside + entry.n_outside - failures
    taken = entry.failures_inside / max(failures, 1) - (entry.n_inside - entry.failures_inside) / max(others, 1)
    return Look(
        class_name=title,
        phrase=phrase,
        measured_on=workspace.confirmation_digest,
        p_value=entry.p_value,
        error_score=found.strength or 0.0,
        held_out_error_score=taken,
        threshold=threshold,
        by=by,
    )


def _first_run(workspace: Workspace, project: Project) -> RunRecord:
    """Return the record of a new run, with how the classifier does, as a run of the methods would have it."""
    samples, settings = workspace.samples, project.settings
    record = new_record(settings, inputs=workspace.prepared.inputs, criterion=describe_criterion(workspace.criterion))
    every = samples.dataset.rows_of(*[Split(name) for name in settings.verify.splits])
    facts = classifier_facts(class_problems(samples.dataset, every, workspace.criterion))
    return record.model_copy(update={"classifier": facts})
