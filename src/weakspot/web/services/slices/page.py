"""Everything about one slice, in the words and figures of the report."""

from collections import Counter

import numpy as np

from weakspot.core.evidence import Share
from weakspot.core.repairs import RepairResult
from weakspot.core.run import RunRecord
from weakspot.core.slices import FailureSlice, SliceName
from weakspot.report import wording
from weakspot.report.findings import SliceSentences, slice_sentences
from weakspot.web.services.samples.facts import answers_of
from weakspot.web.services.slices.samples import LookedAt, look_at, threshold_of
from weakspot.web.services.slices.table import (
    SliceDecision,
    SliceLine,
    decision_view,
    slice_lines,
)
from weakspot.web.services.view import View
from weakspot.web.services.workspace import Workspace

MOST_ANSWERS = 12


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
    decisions: list[SliceDecision]
    repairs: list[RepairStatus]


def slice_page(workspace: Workspace, record: RunRecord, found: FailureSlice) -> SlicePageView:
    seen = look_at(workspace, record, found)
    evidence = next((entry for entry in record.evidence if entry.slice_id == found.slice_id), None)
    failures_inside, n_inside, failures_outside, n_outside = seen.counts
    effective = seen.effective
    return SlicePageView(
        run_id=record.run_id,
        tables=workspace.tables_key,
        line=next(line for line in slice_lines(record) if line.slice_id == found.slice_id),
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
        decisions=[
            decision_view(one) for one in record.decisions if one.slice_id == found.slice_id
        ],
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
    shown, rest = ordered[:MOST_ANSWERS], ordered[MOST_ANSWERS:]
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
