"""The record of one run: enough to repeat it and to read its results, with its preflight, advice and people's decisions."""

from collections.abc import Callable
from enum import StrEnum
from html import escape

from pydantic import Field, JsonValue

from weakspot.core.evidence import ClassFinding, ClassTree, Evidence, Interval
from weakspot.core.record import Record
from weakspot.core.repairs import RepairResult
from weakspot.core.slices import FailureSlice


class AdviceKind(StrEnum):
    """What a person or the product can do."""

    MEND_SETUP = "mend the set-up"
    CHECK_LABELS = "check labels"
    LABEL = "label images"
    COLLECT = "collect images"
    RETRAIN = "retrain the last layer"
    GENERATE = "generate images"
    ACCEPT = "accept and gate"


class Advice(Record):
    """One thing to do.

    Args:
        kind: what.
        subject: id of the slice or class finding it is about; empty if it is about the whole set.
        class_name: the class, empty if it is about the whole set.
        sentence: what to do, how much of it, for what gain, as the terminal prints it; says so if nothing can help.
        n_known: such images that training has now; None if that is not known.
        n_wanted: images to label or collect; None where that is not the remedy or cannot be said.
        gain: expected change of accuracy on these images, -1 to 1; None if it cannot be said.
        gain_interval: its interval.
        is_measured: whether `gain` was measured on test samples, not predicted.
        files: files written for it, relative to the project folder.
        command: the command that does it; empty if none does.
    """

    kind: AdviceKind
    subject: str = ""
    class_name: str = ""
    sentence: str
    n_known: int | None = None
    n_wanted: int | None = None
    gain: float | None = None
    gain_interval: Interval | None = None
    is_measured: bool = False
    files: tuple[str, ...] = ()
    command: str = ""


class DecisionKind(StrEnum):
    """What was decided."""

    ACCEPTED = "accepted"
    DISMISSED = "dismissed"
    RESTORED = "restored"
    RENAMED = "renamed"
    MERGED = "merged"


class Decision(Record):
    """One decision; later ones about the same slice count more.

    Args:
        slice_id: which slice.
        kind: what was decided.
        by: who decided, as that person is called.
        time: ISO 8601, UTC.
        reason: in that person's words.
    """

    slice_id: str
    kind: DecisionKind
    by: str
    time: str
    reason: str = ""


class CheckState(StrEnum):
    """How much a check matters: nothing, worth knowing, or results cannot be trusted until it is mended."""

    OK = "ok"
    NOTICE = "notice"
    PROBLEM = "problem"


class PreflightCheck(Record):
    """One thing that was looked at.

    Args:
        check: short name, for example `class order`.
        state: how much it matters.
        sentence: what was found, in one sentence with its figures.
        fix: what to do; empty if there is nothing to do.
        settings_line: what to write into weakspot.toml, as it stands there; empty if that is not the remedy.
        short: the same in a few words, for one line about all checks.
    """

    check: str
    state: CheckState
    sentence: str
    fix: str = ""
    settings_line: str = ""
    short: str = ""


RECORD_VERSION = 2

Progress = Callable[[int, int | None], None]
"""Told how many items of a long step are done, and how many there are if that is known."""


StageProgress = Callable[[str, int, int | None], None]
"""The same for several steps, each with its name first."""


def no_progress(_done: int, _total: int | None) -> None:
    """Ignore progress."""


def no_stage_progress(_stage: str, _done: int, _total: int | None) -> None:
    """Ignore progress of named steps."""


class ClassNote(Record):
    """Why nothing could be said of a class, or what to know about it."""

    class_name: str
    note: str


class StageRecord(Record):
    """One stage of a run.

    Args:
        stage: its name.
        seconds: how long it took.
        summary: one sentence on what came out.
        was_cached: whether an earlier result was taken.
        n_images: images that went through models, or were read, in it.
        waiting: share of its time that this process waited, for images, downloads or compiled loops.
    """

    stage: str
    seconds: float
    summary: str
    was_cached: bool = False
    n_images: int = 0
    waiting: float = 0.0


class MethodRecord(Record):
    """What one discoverer did in a run.

    Args:
        method: registered name.
        seconds: how long it took.
        n_considered: candidates it looked at on the discovery samples.
        n_found: candidates it put forward.
        n_tested: candidates that passed the screen and were tested on confirmation samples.
        note: why it could not be used, or what to know.
    """

    method: str
    seconds: float = 0.0
    n_considered: int = 0
    n_found: int = 0
    n_tested: int = 0
    note: str = ""


class ClassifierFacts(Record):
    """How the classifier does on the data that slices are looked for in.

    Args:
        n_samples: samples that were looked at.
        n_failed: those of them that fail.
        per_class: class -> (samples, failures).
        confusions: class -> (taken for, count), largest first, at most three; empty for multi-label tasks.
        training: (samples, failures) of the training split; None if it has no predictions.
        counted: what the figures count: images, samples, or labels where a sample may have several.
        effective: independent samples that `n_samples` are worth; None if every sample is a group of its own.
    """

    n_samples: int
    n_failed: int
    per_class: dict[str, tuple[int, int]] = Field(description="class -> (samples, failures)")
    confusions: dict[str, tuple[tuple[str, int], ...]] = Field(default_factory=dict)
    training: tuple[int, int] | None = None
    counted: str = "samples"
    effective: float | None = None


class StoredRepair(Record):
    """A repair that another one took the place of; it can be gone back to.

    Args:
        repair_id: which one; the name of its retrained layer in the run's folder ends with it.
        made: when it was measured, ISO 8601, UTC.
        repairs: what it did.
        advice: what was advised then.
    """

    repair_id: str
    made: str
    repairs: tuple[RepairResult, ...]
    advice: tuple[Advice, ...] = ()


class RunRecord(Record):
    """Inputs, settings, versions and results of one run.

    Args:
        run_id: time and hash.
        command: what was asked for, as typed.
        started: ISO 8601, UTC.
        finished: ISO 8601, UTC; None while it runs.
        seed: seed of the run.
        settings_given: the settings as the user wrote them.
        settings: all settings with defaults filled in.
        versions: library versions and platform.
        inputs: hash of every input (data set, classifier, encoder).
        stages: stages in order.
        criterion: what counts as a failure, in words.
        classifier: how the classifier does before any repair.
        slices: everything that was tested, published or not.
        evidence: what was measured, one entry a slice.
        repairs: what the last repair did, or the one that was gone back to; the chosen strategy first.
        repaired: when that was measured, ISO 8601, UTC; empty if nothing was.
        earlier_repairs: other repairs, oldest first.
        notes: what to know about single classes.
        methods: what every discoverer did.
        decisions: what people decided about slices, oldest first.
        trees: the confirmed slices of every class, put in order.
        checks: what was looked at before the run.
        class_findings: what is said of whole classes, confirmed or not.
        advice: what to do, best first.
        record_version: version of this layout.
    """

    run_id: str
    command: str
    started: str
    finished: str | None = None
    seed: int
    settings_given: dict[str, JsonValue] = Field(default_factory=dict)
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    inputs: dict[str, str] = Field(default_factory=dict)
    stages: tuple[StageRecord, ...] = ()
    criterion: str = ""
    classifier: ClassifierFacts | None = None
    slices: tuple[FailureSlice, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    repairs: tuple[RepairResult, ...] = ()
    repaired: str = ""
    earlier_repairs: tuple[StoredRepair, ...] = ()
    notes: tuple[ClassNote, ...] = ()
    methods: tuple[MethodRecord, ...] = ()
    decisions: tuple[Decision, ...] = ()
    trees: tuple[ClassTree, ...] = ()
    checks: tuple[PreflightCheck, ...] = ()
    class_findings: tuple[ClassFinding, ...] = ()
    advice: tuple[Advice, ...] = ()
    record_version: int = RECORD_VERSION

    def __repr__(self) -> str:
        """Return one line; all of it is in `model_dump()`."""
        n_confirmed, n_tested = len(self.findings()), len(self.evidence)
        first = f", first: {self.findings()[0].title}" if n_confirmed else ""
        return f"<RunRecord {self.run_id}: {n_confirmed} confirmed of {n_tested} tested{first}>"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """Return the confirmed slices as a table, for notebooks."""
        rows = "".join(
            f"<tr><td>{escape(found.title)}</td><td>{evidence.failures_inside} of {evidence.n_inside}</td>"
            f"<td>{evidence.failures_outside} of {evidence.n_outside}</td><td>{evidence.q_value:.2g}</td></tr>"
            for found, evidence in self.published()
            if evidence.explained is None
        )
        if not rows:
            return f"<p>{escape(repr(self).strip('<>'))}: nothing is proven</p>"
        heads = ("slice", "fail inside", "fail in the rest of the class", "q")
        return f"<table><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>{rows}</table>"

    def slice_by_id(self, slice_id: str) -> FailureSlice:
        return next(found for found in self.slices if found.slice_id == slice_id)

    def slices_by_id(self) -> dict[str, FailureSlice]:
        """Return all slices of this run by id; an id is a hash over the whole rule, so ask once for many."""
        return {found.slice_id: found for found in self.slices}

    def findings(self) -> tuple[FailureSlice, ...]:
        """Return the confirmed slices that no stronger one explains, largest gap first: what is repaired and compared."""
        return tuple(found for found, evidence in self.published() if evidence.explained is None)

    def dismissed(self) -> dict[str, Decision]:
        """Return the slices that people dismissed and nobody restored, with the decision."""
        found: dict[str, Decision] = {}
        for decision in self.decisions:
            if decision.kind is DecisionKind.DISMISSED:
                found[decision.slice_id] = decision
            elif decision.kind is DecisionKind.RESTORED:
                found.pop(decision.slice_id, None)
        return found

    def published(self) -> tuple[tuple[FailureSlice, Evidence], ...]:
        """Return the confirmed slices that nobody dismissed, with evidence, largest gap first, those that another explains last."""
        dismissed = self.dismissed()
        confirmed = [
            item
            for item in self.evidence
            if item.verdict == "confirmed" and item.slice_id not in dismissed
        ]
        ordered = sorted(
            confirmed,
            key=lambda item: (item.explained is not None, -item.headline_gap, item.slice_id),
        )
        known = self.slices_by_id()
        return tuple((known[item.slice_id], item) for item in ordered)
