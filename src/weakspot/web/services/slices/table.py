"""All slices of a run as lines of a table, in the order of the report."""

from collections.abc import Iterator

from weakspot.core.decisions import Decision, DecisionKind
from weakspot.core.errors import StoreError
from weakspot.core.evidence import Evidence, Share, Verdict
from weakspot.core.failures import Side
from weakspot.core.ordering import SliceOrder
from weakspot.core.run import RunRecord
from weakspot.core.slices import FailureSlice
from weakspot.pipeline.verdicts import was_tested
from weakspot.report import wording
from weakspot.report.findings import n_tested
from weakspot.report.tree import left_sentence, tree_rows
from weakspot.web.services.view import View, share_with
from weakspot.web.services.workspace import Workspace

MOST_KEPT = 8
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
    return workspace.make_of_run(chosen, "records", lambda record: record, most=MOST_KEPT)


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


class SliceDecision(View):
    """What somebody decided about a slice."""

    kind: DecisionKind
    by: str
    time: str
    reason: str


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
    inside: Share | None
    outside: Share | None
    gap: float | None
    p_value: float | None
    q_value: float | None
    n_tested: int
    verdict: str
    verdict_words: str
    cause: str
    cause_words: str
    witnesses: list[Witness]
    also_found: list[SliceLink]
    stands_for: SliceLink | None
    strength: float | None
    accepted_by: str | None
    dismissed: SliceDecision | None
    explained_by: SliceLink | None
    has_suspect_labels: bool
    kind: str
    parent: str
    coverage: float | None
    excess: float | None


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

    run_id: str
    run_ids: list[str]
    criterion: str
    correction: str
    n_tested: int
    slices: list[SliceLine]
    order: SliceOrder
    left: list[str]


def slice_table(workspace: Workspace, run_id: str | None = None) -> SliceTable:
    """Return all slices of a run, the newest by default; an empty table if the project has no run."""
    known = run_ids(workspace)
    order = workspace.project.settings.report.order
    if run_id is None and not known:
        return SliceTable(
            run_id="",
            run_ids=[],
            criterion="",
            correction="",
            n_tested=0,
            slices=[],
            order=order,
            left=[],
        )
    record = run_of(workspace, run_id)
    return SliceTable(
        run_id=record.run_id,
        run_ids=known,
        criterion=record.criterion,
        correction=wording.CORRECTION_WORDS[record.evidence[0].correction]
        if record.evidence
        else "",
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


def decision_view(decision: Decision) -> SliceDecision:
    return SliceDecision(
        kind=decision.kind, by=decision.by, time=decision.time, reason=decision.reason
    )


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
        last = len(self.published)
        if entry is None:
            return found.slice_id in self.dismissed, last, True, 1.0, 1.0, found.slice_id
        return (
            found.slice_id in self.dismissed,
            self.published.get(found.slice_id, last),
            entry.verdict is not Verdict.NOT_CONFIRMED,
            entry.q_value,
            entry.p_value,
            found.slice_id,
        )

    def line(self, found: FailureSlice) -> SliceLine:
        entry = self.evidence.get(found.slice_id)
        is_tested = entry is not None and was_tested(entry)
        dismissed = self.dismissed.get(found.slice_id)
        cause = None if entry is None else entry.named_cause
        node = self.nodes.get(found.slice_id)
        return SliceLine(
            slice_id=found.slice_id,
            title=found.title,
            class_title=class_title(found),
            method=found.method,
            words="" if found.name is None else found.name.contrast,
            is_doubtful=found.name is not None and found.name.is_doubtful,
            nearest_words=[name.contrast for name in found.nearest_words[: wording.MOST_NEAREST]],
            inside=None
            if entry is None
            else share_with(entry.failures_inside, entry.n_inside, entry.interval_inside),
            outside=None
            if entry is None
            else share_with(entry.failures_outside, entry.n_outside, entry.interval_outside),
            gap=None if entry is None else entry.headline_gap,
            p_value=entry.p_value if entry is not None and is_tested else None,
            q_value=entry.q_value if entry is not None and is_tested else None,
            n_tested=0 if entry is None else entry.n_tested,
            verdict="" if entry is None else entry.verdict.value,
            verdict_words=self._verdict_words(entry),
            cause=cause or "",
            cause_words="" if cause is None else wording.CAUSE_WORDS[cause],
            witnesses=witnesses_of(found),
            also_found=self.alike.get(found.slice_id, []),
            stands_for=None if entry is None else self._link(entry.same_as),
            strength=found.strength,
            accepted_by=self.accepted.get(found.slice_id),
            dismissed=None if dismissed is None else decision_view(dismissed),
            explained_by=None
            if entry is None or entry.explained is None
            else self._link(entry.explained.slice_id),
            has_suspect_labels=entry is not None
            and entry.labels is not None
            and entry.labels.is_flagged,
            kind="" if node is None else node.kind.value,
            parent="" if node is None else node.parent or "",
            coverage=None if node is None else node.coverage,
            excess=None if node is None else node.excess,
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
