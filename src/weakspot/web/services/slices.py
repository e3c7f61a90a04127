"""Slices of a run: the table, the samples of one, and its page, in the words and figures of the report."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from pydantic import Field

from weakspot.core.arrays import BoolArray, DoubleArray, IntArray
from weakspot.core.bounds import SliceOrder
from weakspot.core.errors import DataError, StoreError
from weakspot.core.evidence import Evidence, Share, SliceNode, Verdict, sides_of
from weakspot.core.failures import ClassProblem, Side, class_problems
from weakspot.core.group_tests import effective_number
from weakspot.core.repairs import RepairResult
from weakspot.core.run import Decision, DecisionKind, RunRecord
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice, SliceName
from weakspot.report import wording
from weakspot.report.findings import SliceSentences, n_tested, slice_sentences
from weakspot.report.tree import left_sentence, tree_rows
from weakspot.run.verdicts import was_tested
from weakspot.web.services.samples import ShownSamples, answers_of, shown_samples
from weakspot.web.services.view import FLOAT32, UINT8, View, pack, share_with
from weakspot.web.services.workspace import Workspace

MAX_RUN_RECORDS = 8
NOT_WRITTEN = "The project has no run yet."


def run_ids(workspace: Workspace) -> list[str]:
    return workspace.project.store.runs.run_ids()[::-1]


def run_of(workspace: Workspace, run_id: str | None = None) -> RunRecord:
    """Return a run as it is on disk now, the newest by default.

    Raises:
        StoreError: if there is none of that id, or none at all.
    """
    known = run_ids(workspace)
    chosen = known[0] if run_id is None and known else run_id
    if chosen is None:
        raise StoreError(
            NOT_WRITTEN, fix="Say something of a class, or start a run on the overview."
        )
    return workspace.make_of_run(chosen, "records", lambda record: record, most=MAX_RUN_RECORDS)


NOT_TESTED = "not tested yet"


class SliceLink(View):
    """Another slice, named so that one can go there."""

    slice_id: str
    title: str
    method: str


class Witness(View):
    """What a second witness says of the words of a slice.

    Args:
        name: who was asked, for example `captions`.
        score: -1 to 1; null if it is unknown.
        agrees: whether the words fit; null if it is unknown.
    """

    name: str
    score: float | None
    agrees: bool | None


class SliceLine(View):
    """One slice in one line.

    Args:
        slice_id: which slice.
        title: class and words.
        class_title: its class as pages call it.
        method: who found it.
        words: its best name, empty without one.
        is_doubtful: whether a second witness disagrees with that name.
        nearest_words: words that may fit and may not: none of them is sure.
        inside: failures of its members on the confirmation half; null before it was measured.
        outside: failures of the rest of the class.
        gap: rate inside minus rate outside.
        p_value: null if it was not tested.
        q_value: the same over all that was tested together.
        n_tested: how many were tested together.
        verdict: what the evidence allows to say; empty before it was measured.
        verdict_words: the same as people read it.
        cause: the probable cause, empty if unknown to the record.
        cause_words: the same in a sentence.
        witnesses: who was asked about the name, and their answers.
        also_found: other slices with nearly the same members.
        stands_for: the slice that was tested in place of this one.
        strength: how consistent it was where it was found, in the method's own measure.
        accepted_by: who took it in, null if a method found it.
        dismissed: the decision by which it was set aside, null if it stands.
        explained_by: the stronger slice that accounts for it.
        has_suspect_labels: whether its labels should be looked at first.
        kind: of a confirmed slice, `finding`, `worse` than the finding around it or `explained`; empty for all others.
        parent: the slice around it or the one that explains it, empty without one.
        coverage: its share of all failures; null if it is not confirmed.
        excess: its share of all failures beyond what the rest of its class has; null if it is not confirmed.
    """

    slice_id: str
    title: str
    class_title: str
    method: str
    words: str
    is_doubtful: bool
    nearest_words: list[str]
    inside: Share | None = None
    outside: Share | None = None
    gap: float | None = None
    p_value: float | None = None
    q_value: float | None = None
    n_tested: int = 0
    verdict: str = ""
    verdict_words: str
    cause: str = ""
    cause_words: str = ""
    witnesses: list[Witness]
    also_found: list[SliceLink]
    stands_for: SliceLink | None
    strength: float | None
    accepted_by: str | None
    dismissed: Decision | None
    explained_by: SliceLink | None
    has_suspect_labels: bool = False
    kind: str = ""
    parent: str = ""
    coverage: float | None = None
    excess: float | None = None


class SliceTable(View):
    """All slices of a run.

    Args:
        run_id: which run; empty if the project has none.
        run_ids: all runs, newest first.
        criterion: what counts as a failure, in words.
        correction: which error rate is held over all tests, in words.
        n_tested: how many tests were made.
        slices: in the order of the report, dismissed ones last.
        order: how the project orders them.
        left: how many failures of each class are in no finding.
    """

    run_id: str = ""
    run_ids: list[str] = Field(default_factory=list)
    criterion: str = ""
    correction: str = ""
    n_tested: int = 0
    slices: list[SliceLine] = Field(default_factory=list)
    order: SliceOrder
    left: list[str] = Field(default_factory=list)


def slice_table(workspace: Workspace, run_id: str | None = None) -> SliceTable:
    """Return all slices of a run, the newest by default; an empty table if the project has no run."""
    known = run_ids(workspace)
    order = workspace.project.settings.report.order
    if run_id is None and not known:
        return SliceTable(order=order)
    record = run_of(workspace, run_id)
    corrections = [wording.CORRECTION_WORDS[entry.correction] for entry in record.evidence[:1]]
    return SliceTable(
        run_id=record.run_id,
        run_ids=known,
        criterion=record.criterion,
        correction="".join(corrections),
        n_tested=n_tested(record),
        slices=list(slice_lines(record, order)),
        order=order,
        left=[left_sentence(tree) for tree in record.trees],
    )


def slice_lines(record: RunRecord, order: SliceOrder = SliceOrder.BOTH) -> Iterator[SliceLine]:
    """Yield the slices of a run in the order of its report: confirmed, not confirmed, untested, dismissed."""
    context = _Context(record, order)
    for found in sorted(record.slices, key=context.place):
        yield context.line(found)


def slice_line(record: RunRecord, found: FailureSlice) -> SliceLine:
    return _Context(record).line(found)


class _Context:
    """What lines of the same run have in common."""

    def __init__(self, record: RunRecord, order: SliceOrder = SliceOrder.BOTH) -> None:
        self.by_id = {found.slice_id: found for found in record.slices}
        self.evidence = {entry.slice_id: entry for entry in record.evidence}
        self.dismissed = record.dismissed()
        self.accepted = {
            one.slice_id: one.by for one in record.decisions if one.kind is DecisionKind.ACCEPTED
        }
        rows = tree_rows(record, order)
        self.nodes = {row.slice_id: row.node for row in rows}
        self.published = {row.slice_id: place for place, row in enumerate(rows)}
        self.alike: dict[str, list[SliceLink]] = {}
        for entry in record.evidence:
            if (
                entry.same_as is not None
                and entry.same_as != entry.slice_id
                and entry.slice_id in self.by_id
            ):
                self.alike.setdefault(entry.same_as, []).append(link_to(self.by_id[entry.slice_id]))

    def place(self, found: FailureSlice) -> tuple[bool, int, bool, float, float, str]:
        entry = self.evidence.get(found.slice_id)
        return (
            found.slice_id in self.dismissed,
            self.published.get(found.slice_id, len(self.published)),
            entry is None or entry.verdict is not Verdict.NOT_CONFIRMED,
            1.0 if entry is None else entry.q_value,
            1.0 if entry is None else entry.p_value,
            found.slice_id,
        )

    def line(self, found: FailureSlice) -> SliceLine:
        entry, node = self.evidence.get(found.slice_id), self.nodes.get(found.slice_id)
        return SliceLine(
            slice_id=found.slice_id,
            title=found.title,
            class_title=class_title(found),
            method=found.method,
            words="" if found.name is None else found.name.contrast,
            is_doubtful=found.name is not None and found.name.is_doubtful,
            nearest_words=[name.contrast for name in found.nearest_words[: wording.MAX_NEAREST]],
            verdict_words=self._verdict_words(entry),
            witnesses=witnesses_of(found),
            also_found=self.alike.get(found.slice_id, []),
            stands_for=None if entry is None else self._link(entry.same_as),
            strength=found.strength,
            accepted_by=self.accepted.get(found.slice_id),
            dismissed=self.dismissed.get(found.slice_id),
            explained_by=None
            if entry is None or entry.explained is None
            else self._link(entry.explained.slice_id),
            **(_measured(entry) if entry is not None else {}),
            **(_placed(node) if node is not None else {}),
        )

    def _link(self, slice_id: str | None) -> SliceLink | None:
        other = self.by_id.get(slice_id or "")
        return None if other is None else link_to(other)

    def _verdict_words(self, entry: Evidence | None) -> str:
        if entry is None:
            return NOT_TESTED
        words = wording.VERDICT_WORDS[entry.verdict]
        other = self._link(entry.same_as)
        return words if other is None else f"{words}: {other.title}"


def _measured(entry: Evidence) -> dict[str, Any]:
    """Return what a line says of a slice on the confirmation half."""
    is_tested, cause = was_tested(entry), entry.named_cause
    return {
        "inside": share_with(entry.failures_inside, entry.n_inside, entry.interval_inside),
        "outside": share_with(entry.failures_outside, entry.n_outside, entry.interval_outside),
        "gap": entry.headline_gap,
        "p_value": entry.p_value if is_tested else None,
        "q_value": entry.q_value if is_tested else None,
        "n_tested": entry.n_tested,
        "verdict": entry.verdict.value,
        "cause": cause or "",
        "cause_words": "" if cause is None else wording.CAUSE_WORDS[cause],
        "has_suspect_labels": entry.labels is not None and entry.labels.is_flagged,
    }


def _placed(node: SliceNode) -> dict[str, Any]:
    """Return what a line says of the place of a confirmed slice among the others."""
    return {
        "kind": node.kind.value,
        "parent": node.parent or "",
        "coverage": node.coverage,
        "excess": node.excess,
    }


def link_to(found: FailureSlice) -> SliceLink:
    return SliceLink(slice_id=found.slice_id, title=found.title, method=found.method)


def class_title(found: FailureSlice) -> str:
    return f"no {found.class_name}" if found.side is Side.ABSENT else found.class_name


def witnesses_of(found: FailureSlice) -> list[Witness]:
    return [
        Witness(
            name=name.witness,
            score=name.witness_score,
            agrees=None if name.witness_score is None else not name.is_doubtful,
        )
        for name in found.names[:1]
        if name.witness
    ]


MAX_VIEWED_SLICES = 24
MAX_EXTREME = 60


class Shown(StrEnum):
    """Which samples are asked for.

    `extremes` are the deepest inside, then the farthest outside; `counter` are members that do not fail, then failures outside.
    """

    MEMBERS = "members"
    EXTREMES = "extremes"
    COUNTER = "counter"
    OUTSIDE = "outside"


class SliceSamplePage(ShownSamples):
    """Some samples of a slice's class; their scores say how deep inside they lie, in the measure of the rule.

    Args:
        half: which half the samples are of.
        n_first: how many of them belong to the first part (deepest inside; members that do not fail).
    """

    half: str
    n_first: int


class SliceScores(View):
    """How deep all samples of the class lie in a slice, deepest first: enough to move the threshold without the server.

    Args:
        n_samples: how many.
        scores: little-endian 32-bit floating-point numbers, base64.
        failed: one byte per sample, 1 for failures, base64.
        threshold: where membership begins now.
    """

    n_samples: int
    scores: str
    failed: str
    threshold: float


@dataclass(frozen=True, kw_only=True, eq=False)
class LookedAt:
    """The samples of a slice's class whose membership is known, deepest inside first.

    Args:
        samples: the half that the slice was found on, with all columns that its rule reads.
        problem: samples of the class.
        inside: which of them are members.
        scores: how deep they lie.
    """

    samples: SampleSet
    problem: ClassProblem
    inside: BoolArray
    scores: DoubleArray

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """Return failures and samples inside, failures and samples outside."""
        failed, inside = self.problem.failed, self.inside
        return (
            int(failed[inside].sum()),
            int(inside.sum()),
            int(failed[~inside].sum()),
            int((~inside).sum()),
        )

    @property
    def effective(self) -> tuple[float, float]:
        """Return how many independent samples those inside and outside are worth."""
        groups = self.problem.groups
        return effective_number(groups, self.inside), effective_number(groups, ~self.inside)

    def places(self, kind: Shown) -> tuple[IntArray, int]:
        """Return the places of a kind of sample, best first, and how many of them belong to its first part."""
        inside, outside = np.flatnonzero(self.inside), np.flatnonzero(~self.inside)
        failed = self.problem.failed
        parts = {
            Shown.MEMBERS: (inside, inside[:0]),
            Shown.EXTREMES: (inside[:MAX_EXTREME], outside[::-1][:MAX_EXTREME]),
            Shown.COUNTER: (inside[~failed[inside]], outside[failed[outside]]),
            Shown.OUTSIDE: (outside, outside[:0]),
        }
        first, second = parts[kind]
        return np.concatenate([first, second]), len(first)


def look_at(workspace: Workspace, record: RunRecord, found: FailureSlice) -> LookedAt:
    """Return the samples of a slice's class on the half it was found on; kept for the slices that were looked at last."""
    whole = workspace.samples_for(record)

    def look() -> LookedAt:
        half = half_of(workspace, found)
        return _look_at(workspace, whole.only(half.rows, name=half.name), found)

    key = found.slice_id, whole.dataset
    return workspace.recent("slices looked at", key, look, most=MAX_VIEWED_SLICES)


def half_of(workspace: Workspace, found: FailureSlice) -> SampleSet:
    """Return the half that a slice was found on: of cross-fitted runs either of the two.

    One that was made without predictions was found on nothing, and is shown on the discovery half, the one that people may look at.

    Raises:
        DataError: if the slice was found on other samples than the project holds now.
    """
    use = found.found_on.digest
    if use in (workspace.discovery_use.digest, DataUse.nothing().digest):
        return workspace.discovery
    if (
        use == workspace.confirmation_digest
        and workspace.project.settings.verify.scheme == "cross-fit"
    ):
        return workspace.confirmation
    raise DataError(
        "This slice was found on other samples than the project holds now.",
        fix="Start a new run on the overview.",
    )


def _look_at(workspace: Workspace, samples: SampleSet, found: FailureSlice) -> LookedAt:
    problems = class_problems(samples.dataset, samples.rows, workspace.criterion)
    sides = sides_of(found, samples, problems)
    if sides.problem is None:
        raise DataError("There are no samples of this class to look at.", given=found.class_name)
    scores = found.rule.scores(samples, sides.problem.rows)
    # A row may satisfy one of several rules without having what another reads, so that only its score is unknown.
    scores = np.where(np.isfinite(scores), scores, -np.inf)
    known = np.flatnonzero(sides.inside | sides.outside)
    order = known[np.lexsort((-scores[known], ~sides.inside[known]))]
    return LookedAt(
        samples=samples,
        problem=sides.problem.only(order),
        inside=sides.inside[order],
        scores=scores[order],
    )


def sample_page(
    workspace: Workspace,
    record: RunRecord,
    found: FailureSlice,
    kind: Shown,
    *,
    offset: int,
    limit: int,
) -> SliceSamplePage:
    seen = look_at(workspace, record, found)
    places, n_first = seen.places(kind)
    chosen = places[offset : offset + limit]
    depths = np.maximum(seen.scores[chosen], -1e30).tolist()
    return SliceSamplePage(
        tables=workspace.tables_key,
        half=seen.samples.name,
        total=len(places),
        n_first=n_first,
        offset=offset,
        samples=shown_samples(seen.samples.dataset, seen.problem, chosen, scores=depths),
    )


def slice_scores(workspace: Workspace, record: RunRecord, found: FailureSlice) -> SliceScores:
    """Return the scores of all samples of the class.

    Raises:
        DataError: if the rule of the slice has no threshold.
    """
    threshold = threshold_of(found)
    if threshold is None:
        raise DataError(
            "Whether a sample belongs to this slice does not depend on a threshold.",
            given=found.rule.kind,
        )
    seen = look_at(workspace, record, found)
    return SliceScores(
        n_samples=len(seen.scores),
        scores=pack(seen.scores, FLOAT32),
        failed=pack(seen.problem.failed, UINT8),
        threshold=threshold,
    )


def threshold_of(found: FailureSlice) -> float | None:
    """Return where membership of a slice begins, None if its rule has no single threshold."""
    value = getattr(found.rule, "threshold", None)
    return float(value) if value is not None else None


MAX_ANSWERS = 12


class NameView(SliceName, View):
    """Words for a slice, how they did on samples that did not choose them, and what a second witness says; empty if nobody was asked."""

    witness_sentence: str
    held_sentence: str

    @classmethod
    def of(cls, name: SliceName) -> "NameView":
        sentence = wording.witness_sentence(name) if name.witness else ""
        held = wording.held_sentence(name)
        return cls(**dict(name), witness_sentence=sentence, held_sentence=held)


class AnswerCount(View):
    """How often the classifier gave an answer, inside and outside a slice, on the half that people look at."""

    answer: str
    is_right: bool
    inside: int
    outside: int


class RepairStatus(View):
    """What a repair did to a slice, on samples that nothing was trained or chosen on.

    Args:
        strategy: how it was repaired.
        measured_on: the samples.
        n_samples: members among them.
        right_before: how many were right before.
        right_after: how many are right after.
        p_value: McNemar's exact test of gained against lost, over everything that was ever measured on these samples.
        status: what became of it when failures were looked for again; empty if that was not done.
    """

    strategy: str
    measured_on: str
    n_samples: int
    right_before: int
    right_after: int
    p_value: float
    status: str


class SlicePageView(View):
    """Everything about one slice.

    Args:
        run_id: of which run.
        tables: what row numbers refer to.
        line: the slice as in the table.
        words: the slice in the sentences of the report; empty ones before it was measured.
        rule: who belongs to it.
        elsewhere: the slice on other data.
        names: all its names, best first.
        easy_names: names of the other end.
        looked_at_inside: failures of members on the half that people look at.
        looked_at_outside: failures of the rest of the class there.
        half: which half that is.
        confusion: answers there, most frequent inside first.
        threshold: where membership begins, null if the rule has no single threshold.
        decisions: what people decided, oldest first.
        repairs: what repairs did to it.
    """

    run_id: str
    tables: str
    line: SliceLine
    words: SliceSentences
    rule: str
    elsewhere: list[str]
    names: list[NameView]
    easy_names: list[NameView]
    looked_at_inside: Share
    looked_at_outside: Share
    half: str
    confusion: list[AnswerCount]
    threshold: float | None
    decisions: list[Decision]
    repairs: list[RepairStatus]


def slice_page(workspace: Workspace, record: RunRecord, found: FailureSlice) -> SlicePageView:
    seen = look_at(workspace, record, found)
    evidence = next((entry for entry in record.evidence if entry.slice_id == found.slice_id), None)
    failures_inside, n_inside, failures_outside, n_outside = seen.counts
    effective = seen.effective
    return SlicePageView(
        run_id=record.run_id,
        tables=workspace.tables_key,
        line=slice_line(record, found),
        words=slice_sentences(found, evidence, record),
        rule=found.rule.sentence,
        elsewhere=[
            wording.measurement_words(one) for one in (evidence.elsewhere if evidence else ())
        ],
        names=[NameView.of(name) for name in found.names],
        easy_names=[NameView.of(name) for name in found.easy_names],
        looked_at_inside=Share.of(failures_inside, n_inside, effective=effective[0]),
        looked_at_outside=Share.of(failures_outside, n_outside, effective=effective[1]),
        half=seen.samples.name,
        confusion=_confusion(seen),
        threshold=threshold_of(found),
        decisions=[one for one in record.decisions if one.slice_id == found.slice_id],
        repairs=[
            status
            for result in _every_repair(record)
            if (status := _status(result, found)) is not None
        ],
    )


def _confusion(seen: LookedAt) -> list[AnswerCount]:
    """Return the most frequent answers, the right one among them; the others are counted together."""
    problem = seen.problem
    answers = np.array(answers_of(seen.samples.dataset, problem.rows, problem.failed), dtype=object)
    inside, outside = (
        Counter(answers[seen.inside].tolist()),
        Counter(answers[~seen.inside].tolist()),
    )
    right = {problem.class_name, "right"}
    ordered = sorted(
        set(inside) | set(outside),
        key=lambda one: (one not in right, -inside[one], -outside[one], one),
    )
    shown, rest = ordered[:MAX_ANSWERS], ordered[MAX_ANSWERS:]
    found = [
        AnswerCount(answer=one, is_right=one in right, inside=inside[one], outside=outside[one])
        for one in shown
    ]
    if rest:
        counts = sum(inside[one] for one in rest), sum(outside[one] for one in rest)
        found.append(
            AnswerCount(
                answer=f"{len(rest)} other answers",
                is_right=False,
                inside=counts[0],
                outside=counts[1],
            )
        )
    return found


def _every_repair(record: RunRecord) -> list[RepairResult]:
    """Return the present repair, then earlier ones, newest first."""
    earlier = sorted(record.earlier_repairs, key=lambda one: one.made, reverse=True)
    return [*record.repairs, *(result for one in earlier for result in one.repairs)]


def _status(result: RepairResult, found: FailureSlice) -> RepairStatus | None:
    """Return what a repair did to a slice, None if it was not among those repaired or nothing was measured yet."""
    if found.slice_id not in result.plan.slice_ids or not result.arms:
        return None
    change = result.change_of_slice(found.slice_id)
    if change is None:
        return None
    after = result.aftermath.slices if result.aftermath is not None else ()
    status = next((one.status.value for one in after if one.slice_id == found.slice_id), "")
    return RepairStatus(
        strategy=result.plan.repairer,
        measured_on=result.measured_on.name,
        n_samples=change.n_samples,
        right_before=change.right_before,
        right_after=change.right_after,
        p_value=change.chance,
        status=status,
    )
