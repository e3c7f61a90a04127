"""A project that is run again whenever its samples, its model or its settings change.

A round computes only what changed and says what became of the findings; the journal keeps one line for each that did something.
"""

import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, ValidationError

from weakspot.core.errors import DataError, StoreError, WeakspotError
from weakspot.core.record import Record
from weakspot.core.run import RunRecord, StageProgress, no_stage_progress
from weakspot.gate.baseline import Baseline
from weakspot.gate.check import CheckRequest, check
from weakspot.gate.policy import load_policy
from weakspot.gate.result import PolicyResult
from weakspot.gate.runs import (
    EnsuredRun,
    decisive,
    ensure_run,
    find_sightings,
    held_out,
    load_baseline,
)
from weakspot.project.project import Project
from weakspot.run.loop import open_data
from weakspot.run.wiring import build_classifier
from weakspot.store import atomic
from weakspot.store.project import ProjectStore

JOURNAL_FILE = "watch.jsonl"


class WatchRound(Record):
    """One turn.

    Args:
        kind: what became of it.
        time: when it ended, ISO 8601, UTC.
        changed: what had changed since the last turn that succeeded: samples, model, settings, policy; `first look` at first.
        inputs: what samples, model, settings and policy were, as hashes and ids.
        run_id: the run of these inputs.
        is_new_run: whether it was made in this turn.
        n_samples: samples that the project has now.
        n_new_samples: samples that it had not before.
        n_new_embeddings: images that went through the encoder.
        n_new_predictions: images that went through the classifier.
        n_confirmed: findings of the run.
        new: titles of findings that the run before had not; None if they cannot be compared.
        gone: titles of findings that only the run before had; None if they cannot be compared.
        is_kept: whether the policy is kept; None without one.
        verdict: the same in words.
        error: what went wrong, in words.
    """

    kind: Literal["unchanged", "run", "error"]
    time: str
    changed: tuple[str, ...] = ()
    inputs: dict[str, str] = Field(default_factory=dict)
    run_id: str = ""
    is_new_run: bool = False
    n_samples: int = 0
    n_new_samples: int = 0
    n_new_embeddings: int = 0
    n_new_predictions: int = 0
    n_confirmed: int = 0
    new: tuple[str, ...] | None = None
    gone: tuple[str, ...] | None = None
    is_kept: bool | None = None
    verdict: str = ""
    error: str = ""

    @property
    def line(self) -> str:
        """Return the round as one line for people."""
        if self.kind == "error":
            return f"{self.time} failed: {self.error}"
        if self.kind == "unchanged":
            return f"{self.time} nothing changed; run {self.run_id} stands.{self._judged}"
        made = f"run {self.run_id}" if self.is_new_run else f"run {self.run_id} was there already"
        n_new = f"{self.n_new_embeddings} embeddings, {self.n_new_predictions} predictions computed"
        computed = f"{self.n_new_samples} new samples, {n_new}"
        found = f"{self.n_confirmed} confirmed{self._statuses}"
        return (
            f"{self.time} {' and '.join(self.changed)}: {computed}; {made}: {found}.{self._judged}"
        )

    @property
    def _statuses(self) -> str:
        if self.new is None or self.gone is None:
            return ""
        return f"; new: {_listed(self.new)}; gone: {_listed(self.gone)}"

    @property
    def _judged(self) -> str:
        return f" {self.verdict}" if self.verdict else ""


def read_journal(folder: Path) -> Iterator[WatchRound]:
    """Yield all turns, oldest first; a line that is none, because a machine stopped while it was written, is passed over.

    Args:
        folder: the data folder of the project.
    """
    path = folder / JOURNAL_FILE
    for line in path.read_bytes().splitlines() if path.exists() else []:
        with suppress(ValidationError):
            yield WatchRound.model_validate_json(line)


def last_run(folder: Path) -> WatchRound | None:
    """Return the last turn that succeeded, None if there is none."""
    return next(iter(reversed([turn for turn in read_journal(folder) if turn.kind == "run"])), None)


def note_turn(folder: Path, turn: WatchRound) -> None:
    """Write a turn down, on disk, beginning a new line even after one that was cut off; only the one watcher does."""
    entry = json.dumps(turn.model_dump(mode="json", exclude_defaults=True), ensure_ascii=False)
    with (folder / JOURNAL_FILE).open("ab+") as stream:
        stream.seek(0, os.SEEK_END)
        if stream.tell():
            stream.seek(-1, os.SEEK_END)
            entry = entry if stream.read(1) == b"\n" else f"\n{entry}"
        stream.write(f"{entry}\n".encode())
        stream.flush()
        os.fsync(stream.fileno())
    atomic.flush_folder(folder)


def _listed(titles: tuple[str, ...]) -> str:
    return ", ".join(f"“{title}”" for title in titles) if titles else "none"


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
            kind="unchanged",
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
        kind="run",
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
    return check(project, asked)[0]


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


log = logging.getLogger(__name__)

LOCK_FILE = "watch.lock"
MAX_PAUSE = 3600.0
MAX_DOUBLINGS = 6


class Watcher:
    """Watches one project.

    Args:
        request: what every round does.
        every: seconds between rounds.
        progress: called with how far every stage is.
        tell: called with every round.
        pause: waits for so many seconds; the monotonic clock decides, so that a clock that is set does no harm.
    """

    def __init__(
        self,
        request: RoundRequest,
        *,
        every: float = 60.0,
        progress: StageProgress = no_stage_progress,
        tell: Callable[[WatchRound], None] = lambda _: None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._request = request
        self._every = every
        self._progress = progress
        self._tell = tell
        self._pause = pause
        self._n_failed = 0

    def once(self) -> WatchRound:
        """Do one round; an error of it is raised after it was recorded."""
        with self._alone() as folder:
            try:
                return self._report(folder, self._round(folder))
            except WeakspotError as error:
                note_turn(folder, _failed_round(error))
                raise

    def forever(self) -> None:
        """Do rounds until somebody interrupts; an error ends a round, not the watcher."""
        with self._alone() as folder:
            while True:
                self.one_of_many(folder)
                self._pause(self.next_pause)

    def one_of_many(self, folder: Path) -> WatchRound:
        """Do a round that may fail."""
        try:
            done = self._round(folder)
        except (WeakspotError, OSError) as error:
            self._n_failed += 1
            log.info("A round failed %d times in a row.", self._n_failed, exc_info=error)
            done = _failed_round(error)
        else:
            self._n_failed = 0
        return self._report(folder, done)

    @property
    def next_pause(self) -> float:
        """Return the seconds until the next round: twice as long after every failure, up to an hour."""
        longest = max(self._every, MAX_PAUSE)
        return min(self._every * 2.0 ** min(self._n_failed, MAX_DOUBLINGS), longest)

    def _round(self, folder: Path) -> WatchRound:
        return run_round(self._request, last_run(folder), progress=self._progress)

    def _report(self, folder: Path, done: WatchRound) -> WatchRound:
        self._tell(done)
        if done.kind != "unchanged":
            note_turn(folder, done)
        return done

    @contextmanager
    def _alone(self) -> Iterator[Path]:
        data = ProjectStore.create(self._request.folder).data
        with ExitStack() as stack:
            try:
                stack.enter_context(atomic.exclusive(data / LOCK_FILE))
            except StoreError as error:
                raise StoreError(
                    "Another watcher works on this project.",
                    where=str(data.parent),
                    given=error.what,
                    fix="End it first; the lock vanishes with that process, there is nothing to delete.",
                ) from error
            yield data


def _failed_round(error: WeakspotError | OSError) -> WatchRound:
    message = (
        str(error)
        if isinstance(error, WeakspotError)
        else f"The operating system refused: {error.strerror or error}."
    )
    return WatchRound(
        kind="error",
        time=_now(),
        error=" ".join(message.split()),
    )
