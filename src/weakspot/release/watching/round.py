"""One turn of a watcher: look what changed, compute only that, and say what became of the findings."""

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from weakspot.core.errors import DataError, StoreError
from weakspot.core.run import RunRecord, StageProgress, no_stage_progress
from weakspot.pipeline.loop import open_data
from weakspot.pipeline.wiring import build_classifier
from weakspot.project.project import Project
from weakspot.release.baseline import Baseline
from weakspot.release.checking import CheckRequest, EnsuredRun, check, ensure_run, load_baseline
from weakspot.release.checking.held_out import find_sightings, held_out
from weakspot.release.checking.runs import decisive
from weakspot.release.policy import load_policy
from weakspot.release.result import PolicyResult
from weakspot.release.watching.journal import RoundKind, WatchRound

SAME_AT = 0.5
FIRST_LOOK = "first look"


@dataclass(frozen=True, kw_only=True)
class RoundRequest:
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


def run_round(
    request: RoundRequest, last: WatchRound | None, *, progress: StageProgress = no_stage_progress
) -> WatchRound:
    """Return what one turn did; settings are read anew every time.

    Args:
        request: what to do.
        last: the last turn that succeeded.
        progress: told how far every stage is.
    """
    project = Project.open(request.folder, progress=progress)
    inputs = describe_inputs(project, request)
    changed = _changed(inputs, last)
    if last is not None and not changed and last.run_id in project.store.runs.run_ids():
        result = _judge(project, request, last.run_id) if request.judge_always else None
        return WatchRound(
            kind=RoundKind.UNCHANGED,
            time=_now(),
            run_id=last.run_id,
            inputs=inputs,
            **_verdict(result),
        )
    known = _marks(project)
    ensured = ensure_run(project)
    n_new = _n_new(known, _marks(project))
    done = _run_round(project, ensured, request, last)
    return done.model_copy(
        update={
            "changed": changed or ("the run was missing",),
            "inputs": inputs,
            "n_new_samples": n_new,
        }
    )


def describe_inputs(project: Project, request: RoundRequest) -> dict[str, str]:
    """Return what samples, model, settings and policy are, without computing anything."""
    source = open_data(project.settings.data, project.folder, project.settings.boxes)
    classifier = build_classifier(
        project.settings.classifier,
        project.folder,
        provider=project.settings.engine.provider,
    )
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


def _changed(inputs: dict[str, str], last: WatchRound | None) -> tuple[str, ...]:
    if last is None:
        return (FIRST_LOOK,)
    return tuple(
        f"{name} changed" for name, value in inputs.items() if last.inputs.get(name) != value
    )


def _run_round(
    project: Project, ensured: EnsuredRun, request: RoundRequest, last: WatchRound | None
) -> WatchRound:
    record = ensured.record
    before = _run_before(project, record, last)
    new, gone = (None, None) if before is None else _statuses(project, record, before)
    return WatchRound(
        kind=RoundKind.RUN,
        time=_now(),
        run_id=record.run_id,
        is_new_run=ensured.is_new,
        n_samples=ensured.ingested.n_samples,
        n_new_embeddings=ensured.embedded.n_new_embeddings,
        n_new_predictions=ensured.embedded.n_new_predictions,
        n_confirmed=len(record.findings()),
        new=new,
        gone=gone,
        **_verdict(_judge(project, request, record.run_id)),
    )


def _judge(project: Project, request: RoundRequest, run_id: str) -> PolicyResult | None:
    if request.policy is None:
        return None
    baseline = None if request.baseline is None else load_baseline(request.baseline)
    asked = CheckRequest(
        policy=load_policy(request.policy),
        policy_name=request.policy.name,
        run_id=run_id,
        baseline=baseline,
        may_run=False,
    )
    return check(project, asked).result


def _verdict(result: PolicyResult | None) -> dict[str, bool | str]:
    return {} if result is None else {"is_kept": result.is_kept, "verdict": result.headline}


def _run_before(project: Project, record: RunRecord, last: WatchRound | None) -> RunRecord | None:
    runs = project.store.runs
    names = [run_id for run_id in runs.run_ids() if run_id != record.run_id]
    if last is not None and last.run_id in names:
        return runs.load(last.run_id)
    for run_id in reversed(names if last is None else []):
        found = runs.load(run_id)
        if len(found.evidence) == len(found.slices):
            return found
    return None


def _statuses(
    project: Project, record: RunRecord, before: RunRecord
) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """Return which findings are new and which are gone, None if the runs read other embeddings or columns."""
    both = record.model_copy(update={"slices": (*record.slices, *before.slices)})
    samples = project.prepared(both).samples
    now = held_out(record, samples, project.settings, project.settings.failure.criterion())
    try:
        new = find_sightings(record, Baseline(run=before), now, samples, same_at=SAME_AT)
        old = find_sightings(before, Baseline(run=record), now, samples, same_at=SAME_AT)
    except (DataError, StoreError):
        return None, None
    return tuple(one.subject for one in new if one.is_new), tuple(
        one.subject for one in old if one.is_new
    )


def _marks(project: Project) -> pa.ChunkedArray | None:
    """Return by what every sample is known again, None before the first ingest: its content or, without an image, its key."""
    try:
        table = project.store.dataset().table
    except StoreError:
        return None
    return pc.if_else(
        pc.is_valid(table.column("location")), table.column("content_hash"), table.column("key")
    )


def _n_new(before: pa.ChunkedArray | None, now: pa.ChunkedArray | None) -> int:
    if now is None:
        return 0
    return (
        len(now) if before is None else len(now) - int(pc.sum(pc.is_in(now, before)).as_py() or 0)
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
