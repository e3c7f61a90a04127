"""One turn of a watcher: look what changed, compute only that, and say what became of the findings."""

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from weakspot.app.checking import CheckRequest, EnsuredRun, check, ensured_run, load_baseline
from weakspot.app.checking.held_out import held_out
from weakspot.app.checking.present import decisive
from weakspot.app.checking.sightings import sighted
from weakspot.app.loop import open_data
from weakspot.app.project import Project
from weakspot.app.watching.journal import TurnKind, WatchTurn
from weakspot.app.wiring import build_classifier
from weakspot.core.errors import DataError, StoreError
from weakspot.core.run import RunRecord, StageProgress, no_stage_progress
from weakspot.release.baseline import Baseline
from weakspot.release.outcome import PolicyOutcome
from weakspot.release.policy import load_policy

SAME_AT = 0.5
FIRST_LOOK = "first look"


@dataclass(frozen=True, kw_only=True)
class TurnRequest:
    """What a turn does.

    Args:
        folder: the project.
        policy: policy file to judge by, if any.
        baseline: project or file to compare with, if any.
        judge_always: judge also when nothing changed.
    """

    folder: Path
    policy: Path | None = None
    baseline: Path | None = None
    judge_always: bool = False


def take_turn(request: TurnRequest, last: WatchTurn | None, *, progress: StageProgress = no_stage_progress) -> WatchTurn:
    """Return what one turn did; settings are read anew every time.

    Args:
        request: what to do.
        last: the last turn that succeeded.
        progress: told how far every stage is.
    """
    project = Project.open(request.folder, progress=progress)
    inputs = sensed(project, request)
    changed = _changed(inputs, last)
    if last is not None and not changed and last.run_id in project.store.runs.run_ids():
        outcome = _judged(project, request, last.run_id) if request.judge_always else None
        return WatchTurn(kind=TurnKind.UNCHANGED, time=_now(), run_id=last.run_id, inputs=inputs, **_verdict(outcome))
    known = _marks(project)
    ensured = ensured_run(project)
    n_new = _n_new(known, _marks(project))
    done = _run_turn(project, ensured, request, last)
    return done.model_copy(update={"changed": changed or ("the run was missing",), "inputs": inputs, "n_new_samples": n_new})


def sensed(project: Project, request: TurnRequest) -> dict[str, str]:
    """Return what samples, model, settings and policy are, without computing anything."""
    source = open_data(project.settings.data, project.folder, project.settings.boxes)
    classifier = build_classifier(project.settings.classifier, project.folder)
    settings = json.dumps(decisive(project.settings), sort_keys=True)
    found = {
        "samples": _digest(f"{source.fingerprint()} {source.location}"),
        "model": "" if classifier is None else classifier.classifier_id,
        "settings": _digest(settings),
    }
    for name, path in (("policy", request.policy), ("baseline", request.baseline)):
        if path is not None and path.is_file():
            found[name] = _digest(path.read_text(encoding="utf-8", errors="replace"))
    return found


def _changed(inputs: dict[str, str], last: WatchTurn | None) -> tuple[str, ...]:
    if last is None:
        return (FIRST_LOOK,)
    return tuple(f"{name} changed" for name, value in inputs.items() if last.inputs.get(name) != value)


def _run_turn(project: Project, ensured: EnsuredRun, request: TurnRequest, last: WatchTurn | None) -> WatchTurn:
    record = ensured.record
    before = _run_before(project, record, last)
    new, gone = (None, None) if before is None else _fates(project, record, before)
    return WatchTurn(
        kind=TurnKind.RUN,
        time=_now(),
        run_id=record.run_id,
        is_new_run=ensured.is_new,
        n_samples=ensured.ingested.n_samples,
        n_new_vectors=ensured.embedded.n_new_vectors,
        n_new_outcomes=ensured.embedded.n_new_outcomes,
        n_confirmed=len(record.findings()),
        new=new,
        gone=gone,
        **_verdict(_judged(project, request, record.run_id)),
    )


def _judged(project: Project, request: TurnRequest, run_id: str) -> PolicyOutcome | None:
    if request.policy is None:
        return None
    baseline = None if request.baseline is None else load_baseline(request.baseline)
    asked = CheckRequest(
        policy=load_policy(request.policy), policy_name=request.policy.name, run_id=run_id, baseline=baseline, may_run=False
    )
    return check(project, asked).outcome


def _verdict(outcome: PolicyOutcome | None) -> dict[str, bool | str]:
    return {} if outcome is None else {"is_kept": outcome.is_kept, "verdict": outcome.headline}


def _run_before(project: Project, record: RunRecord, last: WatchTurn | None) -> RunRecord | None:
    """Return the run that findings are compared with: that of the last turn, else the newest other one that was verified."""
    runs = project.store.runs
    names = [run_id for run_id in runs.run_ids() if run_id != record.run_id]
    if last is not None and last.run_id in names:
        return runs.load(last.run_id)
    for run_id in reversed(names if last is None else []):
        found = runs.load(run_id)
        if len(found.evidence) == len(found.slices):
            return found
    return None


def _fates(project: Project, record: RunRecord, before: RunRecord) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """Return which findings are new and which are gone, None if the runs read other vectors or columns."""
    both = record.model_copy(update={"slices": (*record.slices, *before.slices)})
    samples = project.prepared(both).samples
    now = held_out(record, samples, project.settings, project.settings.failure.criterion())
    try:
        new = sighted(record, Baseline(run=before), now, samples, same_at=SAME_AT)
        old = sighted(before, Baseline(run=record), now, samples, same_at=SAME_AT)
    except (DataError, StoreError):
        return None, None
    return tuple(one.subject for one in new if one.is_new), tuple(one.subject for one in old if one.is_new)


def _marks(project: Project) -> pa.ChunkedArray | None:
    """Return by what every sample is known again, None before the first ingest: its content or, without a picture, its key."""
    try:
        table = project.store.dataset().table
    except StoreError:
        return None
    return pc.if_else(pc.is_valid(table.column("location")), table.column("content_hash"), table.column("key"))


def _n_new(before: pa.ChunkedArray | None, now: pa.ChunkedArray | None) -> int:
    if now is None:
        return 0
    return len(now) if before is None else len(now) - int(pc.sum(pc.is_in(now, before)).as_py() or 0)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
