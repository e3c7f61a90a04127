"""Everything about one slice, in the words and figures of the report."""

from collections import Counter

import numpy as np

from weakspot.app.browsing.slice_samples import LookedAt, answers_of, looked_at, threshold_of
from weakspot.app.browsing.slice_table import (
    SliceDecision,
    SliceLine,
    SliceRate,
    decision_view,
    rate_of,
    slice_lines,
)
from weakspot.app.browsing.view import View
from weakspot.app.browsing.workspace import Workspace
from weakspot.core.evidence import Evidence, Interval
from weakspot.core.repairs import GroupKind, RepairOutcome
from weakspot.core.rules import AllOfRule, AnyOfRule, ColumnRule, MembershipRule
from weakspot.core.run import RunRecord
from weakspot.core.slices import FailureSlice, SliceName
from weakspot.core.statistics import wilson_interval
from weakspot.report import wording
from weakspot.report.findings import Finding, finding
from weakspot.report.pictures import SlicePictures

MOST_ANSWERS = 12
MOST_VALUES_SAID = 6
RULE_WORDS = {
    "linear": "Samples that lie far enough along a direction.",
    "nearest": "Samples that are nearer to one phrase than to all others.",
    "ball": "Samples that lie near a centre.",
    "mixture": "Samples that one group of look-alikes claims.",
    "outcome": "Samples of which the classifier is unsure.",
    "ids": "Samples that were listed one by one.",
}


class NameView(View):
    """Words for a slice.

    Args:
        phrase: the name as a caption.
        contrast: what sets it apart.
        score: how well the words fit, comparable only within one describer.
        describer: who found it; `person` for words that somebody wrote.
        accuracy_nearest: accuracy of the samples nearest to the phrase.
        sizes: numbers of nearest samples, ascending.
        accuracies: accuracy of so many nearest samples.
        said: what a second witness says, empty if nobody was asked.
        is_doubtful: whether a second witness disagrees.
    """

    phrase: str
    contrast: str
    score: float
    describer: str
    accuracy_nearest: float | None
    sizes: list[int]
    accuracies: list[float]
    said: str
    is_doubtful: bool


class AnswerCount(View):
    """How often the classifier gave an answer, inside and outside a slice, on the half that people look at."""

    answer: str
    is_right: bool
    inside: int
    outside: int


class RepairFate(View):
    """What a repair did to a slice, on samples that nothing was trained or chosen on.

    Args:
        strategy: how it was repaired.
        measured_on: the samples.
        n_samples: members among them.
        right_before: how many were right before.
        right_after: how many are right after.
        p_value: McNemar's exact test of gained against lost.
        fate: what became of it when failures were looked for again; empty if that was not done.
    """

    strategy: str
    measured_on: str
    n_samples: int
    right_before: int
    right_after: int
    p_value: float
    fate: str


class SliceWords(View):
    """A slice in the sentences of the report.

    Args:
        sentence: what it says; empty before it was measured.
        proof: how it was tested.
        effect: how large the gap is.
        strength: how consistent it was where it was found.
        doubts: what second witnesses say of its names.
        cause: the probable cause.
        pull: what its samples are taken for.
        labels: what was seen of its labels.
        elsewhere: the slice on other data.
        explained: why it is no finding of its own.
        people: what people decided.
        rule: who belongs to it.
    """

    sentence: str
    proof: str
    effect: str
    strength: str
    doubts: list[str]
    cause: list[str]
    pull: str
    labels: str
    elsewhere: list[str]
    explained: str
    people: str
    rule: str


class SlicePageView(View):
    """Everything about one slice.

    Args:
        run_id: of which run.
        tables: what row numbers refer to.
        line: the slice as in the table.
        words: the slice in sentences.
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
    words: SliceWords
    names: list[NameView]
    easy_names: list[NameView]
    looked_at_inside: SliceRate
    looked_at_outside: SliceRate
    half: str
    confusion: list[AnswerCount]
    threshold: float | None
    decisions: list[SliceDecision]
    repairs: list[RepairFate]


def slice_page(workspace: Workspace, record: RunRecord, found: FailureSlice) -> SlicePageView:
    """Return everything about a slice of a run."""
    seen = looked_at(workspace, record, found)
    failures_inside, n_inside, failures_outside, n_outside = seen.counts
    return SlicePageView(
        run_id=record.run_id,
        tables=workspace.tables_key,
        line=next(line for line in slice_lines(record) if line.slice_id == found.slice_id),
        words=_words(record, found),
        names=[_name(name) for name in found.names],
        easy_names=[_name(name) for name in found.easy_names],
        looked_at_inside=_rate(failures_inside, n_inside),
        looked_at_outside=_rate(failures_outside, n_outside),
        half=seen.samples.name,
        confusion=_confusion(seen),
        threshold=threshold_of(found),
        decisions=[decision_view(one) for one in record.decisions if one.slice_id == found.slice_id],
        repairs=[fate for outcome in record.repairs if (fate := _fate(outcome, found)) is not None],
    )


def _rate(count: int, total: int) -> SliceRate:
    low, high = wilson_interval(count, total)
    return rate_of(count, total, Interval(low=low, high=high))


def _words(record: RunRecord, found: FailureSlice) -> SliceWords:
    evidence = next((entry for entry in record.evidence if entry.slice_id == found.slice_id), None)
    rule = rule_words(found.rule)
    if evidence is None:
        said = [wording.witness_sentence(name) for name in found.names if name.witness]
        unsaid = dict.fromkeys(("sentence", "proof", "effect", "strength", "pull", "labels", "explained", "people"), "")
        return SliceWords(**unsaid, doubts=said, cause=[], elsewhere=[], rule=rule)
    return _worded(finding(0, found, evidence, record, SlicePictures()), evidence, rule)


def _worded(said: Finding, evidence: Evidence, rule: str) -> SliceWords:
    return SliceWords(
        sentence=said.sentence,
        proof=said.proof,
        effect=said.effect,
        strength=said.strength,
        doubts=list(said.doubts),
        cause=list(said.cause),
        pull=said.pull,
        labels=said.labels,
        elsewhere=[wording.measurement_words(measured) for measured in evidence.elsewhere],
        explained=said.explained,
        people=said.people,
        rule=rule,
    )


def rule_words(rule: MembershipRule) -> str:
    """Return in a sentence who belongs to a slice.

    >>> rule_words(ColumnRule(column="site", values=("a", "b")))
    'Samples whose “site” is a or b.'
    """
    if isinstance(rule, AnyOfRule | AllOfRule):
        joined = " Or: " if isinstance(rule, AnyOfRule) else " And: "
        return joined.join(rule_words(part) for part in rule.rules)
    if not isinstance(rule, ColumnRule):
        return RULE_WORDS[rule.kind]
    if rule.values:
        named = [str(value) for value in rule.values[:MOST_VALUES_SAID]]
        further = len(rule.values) - len(named)
        return f"Samples whose “{rule.column}” is {' or '.join(named)}{f' or one of {further} others' if further else ''}."
    low = "" if rule.low is None else f" at least {rule.low:g}"
    high = "" if rule.high is None else f"{' and' if low else ''} below {rule.high:g}"
    return f"Samples whose “{rule.column}” is{low}{high}."


def _name(name: SliceName) -> NameView:
    return NameView(
        phrase=name.phrase,
        contrast=name.contrast,
        score=name.score,
        describer=name.describer,
        accuracy_nearest=name.accuracy_nearest,
        sizes=[size for size, _ in name.curve],
        accuracies=[accuracy for _, accuracy in name.curve],
        said=wording.witness_sentence(name) if name.witness else "",
        is_doubtful=name.is_doubtful,
    )


def _confusion(seen: LookedAt) -> list[AnswerCount]:
    """Return the most frequent answers, the right one among them; the others are counted together."""
    problem = seen.problem
    answers = np.array(answers_of(seen.samples.dataset, problem.rows, problem.failed), dtype=object)
    inside, outside = Counter(answers[seen.inside].tolist()), Counter(answers[~seen.inside].tolist())
    right = {problem.class_name, "right"}
    ordered = sorted(set(inside) | set(outside), key=lambda one: (one not in right, -inside[one], -outside[one], one))
    shown, rest = ordered[:MOST_ANSWERS], ordered[MOST_ANSWERS:]
    found = [AnswerCount(answer=one, is_right=one in right, inside=inside[one], outside=outside[one]) for one in shown]
    if rest:
        counts = sum(inside[one] for one in rest), sum(outside[one] for one in rest)
        found.append(AnswerCount(answer=f"{len(rest)} other answers", is_right=False, inside=counts[0], outside=counts[1]))
    return found


def _fate(outcome: RepairOutcome, found: FailureSlice) -> RepairFate | None:
    """Return what a repair did to a slice, None if it was not among those repaired or nothing was measured yet."""
    if found.slice_id not in outcome.plan.slice_ids or not outcome.arms:
        return None
    change = outcome.arms[0].change_of(GroupKind.SLICE, found.title)
    if change is None:
        return None
    after = outcome.aftermath.slices if outcome.aftermath is not None else ()
    fate = next((one.fate.value for one in after if one.slice_id == found.slice_id), "")
    return RepairFate(
        strategy=outcome.plan.repairer,
        measured_on=outcome.measured_on.name,
        n_samples=change.n_samples,
        right_before=change.right_before,
        right_after=change.right_after,
        p_value=change.p_value,
        fate=fate,
    )
