"""What was measured on data that was not used to find a slice, and what that proves: of slices, their tree, whole classes and groups."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from weakspot.core.arrays import BoolArray
from weakspot.core.failures import ClassProblem, Side
from weakspot.core.group_tests import GroupTest, count_groups, effective_number, group_interval
from weakspot.core.record import Record
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice, matches
from weakspot.core.statistics import Correction, cohens_h, risk_ratio_interval


class NodeKind(StrEnum):
    """What a confirmed slice is in the tree of its class."""

    FINDING = "finding"
    WORSE = "worse"
    EXPLAINED = "explained"


class Explanation(Record):
    """Why a confirmed slice is no finding of its own: a stronger one of its class accounts for it.

    Args:
        slice_id: the stronger slice.
        shared_failures: share of the slice's failures that are members of the stronger one.
        n_inside: members of the slice that are in no stronger slice.
        failures_inside: failures among them.
        n_outside: samples of the class that are in neither.
        failures_outside: failures among them.
        shared_by_all: share of the slice's failures that are members of any finding; None if that was not counted.
        n_both: members of both slices.
        failures_both: failures among them.
        n_beside: other members of the stronger one.
        failures_beside: failures among them.
    """

    slice_id: str
    shared_failures: float
    n_inside: int
    failures_inside: int
    n_outside: int
    failures_outside: int
    shared_by_all: float | None = None
    n_both: int = 0
    failures_both: int = 0
    n_beside: int = 0
    failures_beside: int = 0


class SliceNode(Record):
    """The place of a confirmed slice.

    Args:
        slice_id: which slice.
        kind: a finding of its own; worse than the finding around it; or explained by another one.
        parent: the finding around it, or the one that explains it.
        coverage: its share of all failures, of all classes.
        excess: its share of all failures beyond what it had if it failed as often as the rest of its class.
        share_inside: how many of its members are members of the parent.
        others_failed: failures among the other members of the parent.
        n_others: other members of the parent.
        p_value: that it fails no more often than those, corrected for the slices of the class that were compared so.
    """

    slice_id: str
    kind: NodeKind = NodeKind.FINDING
    parent: str | None = None
    coverage: float = 0.0
    excess: float = 0.0
    share_inside: float | None = None
    others_failed: int = 0
    n_others: int = 0
    p_value: float | None = None


class ClassTree(Record):
    """The confirmed slices of one class.

    Args:
        class_name: the class.
        side: for multi-label tasks, whether members have or lack the label.
        n_failed: failures of the class among the samples that they were confirmed on.
        n_left: those in no finding.
        nodes: every confirmed slice once.
    """

    class_name: str
    side: Side | None = None
    n_failed: int = 0
    n_left: int = 0
    nodes: tuple[SliceNode, ...] = ()


class Verdict(StrEnum):
    """What the evidence of a slice allows to say."""

    CONFIRMED = "confirmed"
    NOT_CONFIRMED = "not confirmed"
    TOO_FEW = "too few samples"
    SAME = "same as another slice"
    CIRCULAR = "cannot be tested"


class Cause(StrEnum):
    """Why the classifier fails there, as far as the training data tells."""

    RARE = "rare in training"
    SHIFT = "more common than in training"
    SPURIOUS = "spurious cue"
    LABELS = "wrong labels"
    CONFUSABLE = "the classes look alike"
    HARD = "hard although common"
    UNKNOWN = "unknown"


class Interval(Record):
    """A confidence interval of a rate."""

    low: float
    high: float
    level: float = 0.95


class Share(Record):
    """So many of so many, with Wilson's interval."""

    count: int
    total: int
    value: float
    interval: Interval

    @classmethod
    def of(
        cls, count: int, total: int, *, level: float = 0.95, effective: float | None = None
    ) -> "Share":
        """Return the share of a count; 0 with the interval (0, 1) if there is nothing to count.

        Args:
            count: so many.
            total: of so many.
            level: of the interval.
            effective: how many independent samples they are worth; None: all of them.
        """
        worth = float(total) if effective is None else effective
        low, high = group_interval(count, total, worth, level=level)
        return cls(
            count=count,
            total=total,
            value=count / total if total else 0.0,
            interval=Interval(low=low, high=high, level=level),
        )


class ConfusedWith(Record):
    """The wrong answer that most failures of a slice get.

    Args:
        answer: the class that members are taken for.
        inside: members that are taken for it.
        outside: samples of the class outside the slice that are taken for it.
        among_failures: failures inside the slice that are taken for it.
        among_other_failures: failures of the class outside the slice that are taken for it.
        p_value: chance of such a difference between `inside` and `outside` if there were none, times the number of wrong answers
            that were looked at.
        is_real: whether members get the answer more often than the rest of the class, and either most failures inside get it or
            a larger part of them than of the failures outside.
        sentence: the finding in words.
    """

    answer: str
    inside: Share
    outside: Share
    among_failures: Share
    among_other_failures: Share
    p_value: float
    is_real: bool
    sentence: str = ""


class CauseFinding(Record):
    """The probable cause with the figures behind it.

    Args:
        cause: the verdict.
        share_training: share of members among the class's training samples, None when unknown.
        share_evaluation: share of members among the class's evaluation samples.
        dominant_prediction: the class that failures are mostly taken for, if any.
        dominant_share: its share among the failures.
        sentence: the finding in words.
        in_training: `share_training` with counts and interval.
        in_evaluation: `share_evaluation` with counts and interval.
        rival: the class that the look belongs to in training or, if there is none, that members are taken for.
        in_rival: members among the training samples of `rival`.
        confused_with: where failures go, None for multi-label tasks and without failures.
        either: failures taken for `rival` that lie where training has samples of both classes, so that its labels alone would not
            decide them; None if that was not looked into.
        told_apart: how often training samples around these failures have the label of most of their own neighbours.
        signs: what speaks for the cause or, where it is unknown, what is missing to tell; one sentence each.
    """

    cause: Cause
    share_training: float | None = None
    share_evaluation: float | None = None
    dominant_prediction: str | None = None
    dominant_share: float | None = None
    sentence: str = ""
    in_training: Share | None = None
    in_evaluation: Share | None = None
    rival: str | None = None
    in_rival: Share | None = None
    confused_with: ConfusedWith | None = None
    either: Share | None = None
    told_apart: float | None = None
    signs: tuple[str, ...] = ()


class LabelFinding(Record):
    """Whether the failures of a slice look like wrong labels rather than wrong predictions.

    Args:
        n_suspect: failures inside the slice whose label is suspect.
        share: their share among the failures inside.
        inside: the same with counts and interval.
        outside: suspect labels among the failures of the class outside the slice.
        witnesses: who was asked, for example `probabilities` and `neighbours`; a label is suspect if all of them agree.
        is_flagged: whether to look at the labels before anything else.
        sentence: the finding in words.
        is_doubtful: whether labels may be wrong, but too few witnesses agree or can be asked; no other cause is named then.
    """

    n_suspect: int
    share: float
    inside: Share
    outside: Share
    witnesses: tuple[str, ...]
    is_flagged: bool
    sentence: str = ""
    is_doubtful: bool = False


class EffectSize(Record):
    """How large a gap is, beside whether it is there.

    Args:
        cohens_h: 0.2 is small, 0.5 is medium, 0.8 is large.
        risk_ratio: how many times as often members fail as the rest of the class; None if none of the rest failed.
        ratio_interval: interval of the risk ratio; finite also where the ratio is not.
    """

    cohens_h: float
    risk_ratio: float | None
    ratio_interval: Interval


class Measurement(Record):
    """A slice on other data than it was found and tested on; reported, never decided by.

    Args:
        measured_on: the data.
        inside: failures among the class's samples inside the slice.
        outside: failures among those outside.
        gap: rate inside minus rate outside.
    """

    measured_on: DataUse
    inside: Share
    outside: Share
    gap: float


class Evidence(Record):
    """One measurement of one slice.

    Args:
        slice_id: which slice.
        verifier: registered name of the verifier.
        measured_on: the data, disjoint from the data the slice was found on.
        n_inside: class samples inside the slice.
        failures_inside: failures among them.
        n_outside: class samples outside the slice.
        failures_outside: failures among them.
        rate_inside: failure rate inside, 0 to 1.
        rate_outside: failure rate outside.
        interval_inside: interval of `rate_inside`.
        interval_outside: interval of `rate_outside`.
        gap: `rate_inside - rate_outside`; larger is worse.
        p_value: chance of such a gap if members failed no more often than the rest of the class.
        q_value: error rate, of the kind `correction` says, at which this slice would just be published, over all that was tested.
        n_tested: how many slices were tested together.
        verdict: what this allows to say.
        cause: why, if it was looked into.
        correction: which error rate is held over all that was tested.
        weight: how much this test counted, fixed on the discovery samples; 1 on average.
        same_as: the slice that was tested in place of this one, because their members are nearly the same.
        effect: how large the gap is; None if one side is empty.
        labels: whether labels look wrong, if it was looked into.
        elsewhere: the slice on other data.
        explained: set if the failures are mostly those of a stronger confirmed slice.
        adjusted_gap: the gap, allowing for the fact that only slices with a large one are confirmed; None if not confirmed.
        adjusted_interval: its interval.
        groups_inside: groups of images among `n_inside`; 0 if every image stands for itself.
        groups_outside: the same outside.
        n_compared: how many rules `p_value` allows for, in independent ones; more than 1 for rules made without predictions, of which
            the best were chosen on the samples that they are measured on. Divided by it, `p_value` is that of the rule alone.
        batch: which batch of questions to these samples it belongs to, counted from 1; 0 if that was not counted.
        question: names what was asked of which samples, for the ledger; empty if nothing could be.
    """

    slice_id: str
    verifier: str
    measured_on: DataUse
    n_inside: int
    failures_inside: int
    n_outside: int
    failures_outside: int
    rate_inside: float
    rate_outside: float
    interval_inside: Interval
    interval_outside: Interval
    gap: float
    p_value: float
    q_value: float
    n_tested: int
    verdict: Verdict
    cause: CauseFinding | None = None
    correction: Correction = "fdr"
    weight: float = 1.0
    same_as: str | None = None
    effect: EffectSize | None = None
    labels: LabelFinding | None = None
    elsewhere: tuple[Measurement, ...] = ()
    explained: Explanation | None = None
    adjusted_gap: float | None = None
    adjusted_interval: Interval | None = None
    groups_inside: int = 0
    groups_outside: int = 0
    batch: int = 0
    question: str = ""
    n_compared: float = 1.0

    @property
    def headline_gap(self) -> float:
        """Return the gap to be told: the adjusted one where there is one."""
        return self.gap if self.adjusted_gap is None else self.adjusted_gap

    @property
    def named_cause(self) -> Cause | None:
        """Return the cause that every page, report and file names; None if none was looked for."""
        if self.labels is not None and self.labels.is_flagged:
            return Cause.LABELS
        return None if self.cause is None else self.cause.cause


@dataclass(frozen=True, kw_only=True, eq=False)
class SliceSides:
    """The samples of a class inside and outside a slice; in neither are those whose membership is unknown for want of an embedding.

    Args:
        problem: the samples of the class, None if there are none.
        inside: which of them are members.
        outside: which of them are not.
    """

    problem: ClassProblem | None
    inside: BoolArray
    outside: BoolArray

    @property
    def table(self) -> tuple[int, int, int, int]:
        if self.problem is None:
            return 0, 0, 0, 0
        failed = self.problem.failed
        counts = (
            failed[self.inside].sum(),
            self.inside.sum(),
            failed[self.outside].sum(),
            self.outside.sum(),
        )
        return int(counts[0]), int(counts[1]), int(counts[2]), int(counts[3])

    @property
    def units(self) -> tuple[int, int]:
        """Return how many groups have samples inside and outside; as many as samples if every one is its own."""
        groups = None if self.problem is None else self.problem.groups
        return count_groups(groups, self.inside), count_groups(groups, self.outside)

    @property
    def effective(self) -> tuple[float, float]:
        """Return how many independent samples those inside and outside are worth."""
        groups = None if self.problem is None else self.problem.groups
        return effective_number(groups, self.inside), effective_number(groups, self.outside)

    @property
    def has_groups(self) -> bool:
        return self.problem is not None and self.problem.groups is not None


def sides_p(sides: Sequence[SliceSides]) -> list[float]:
    """Return the p-value of every slice: that its members fail no more often than the rest of the class; groups count once."""
    p_values = [1.0] * len(sides)
    same: dict[tuple[int, bytes], list[int]] = defaultdict(list)
    for place, one in enumerate(sides):
        if one.problem is not None:
            known = one.inside | one.outside
            same[id(one.problem), b"" if known.all() else known.tobytes()].append(place)
    for places in same.values():
        first = sides[places[0]]
        known = first.inside | first.outside
        if first.problem is None or not known.any():
            continue
        groups = None if first.problem.groups is None else first.problem.groups[known]
        test = GroupTest(first.problem.failed[known], groups)
        found = test.p_values([sides[place].inside[known] for place in places])
        for place, p_value in zip(places, found, strict=True):
            p_values[place] = p_value
    return p_values


def sides_of(
    found: FailureSlice, samples: SampleSet, problems: Sequence[ClassProblem]
) -> SliceSides:
    problem = next((one for one in problems if matches(found, one)), None)
    if problem is None:
        nobody = np.zeros(0, dtype=np.bool_)
        return SliceSides(problem=None, inside=nobody, outside=nobody)
    inside = found.inside(samples, problem)
    is_known = found.rule.is_known(samples, problem.rows)
    return SliceSides(problem=problem, inside=inside & is_known, outside=~inside & is_known)


def effect_size(
    table: tuple[int, int, int, int],
    *,
    level: float = 0.95,
    effective: tuple[float, float] | None = None,
) -> EffectSize | None:
    """Return the effect size of failures and samples inside and outside, None if one side is empty.

    Args:
        table: failures and samples inside, failures and samples outside.
        level: of the interval.
        effective: how many independent samples each side is worth; None: as many as there are.
    """
    failures_inside, n_inside, failures_outside, n_outside = table
    if not n_inside or not n_outside:
        return None
    rate, other = failures_inside / n_inside, failures_outside / n_outside
    worth = (n_inside, n_outside) if effective is None else effective
    low, high = risk_ratio_interval(
        rate * worth[0], worth[0], other * worth[1], worth[1], level=level
    )
    return EffectSize(
        cohens_h=cohens_h(rate, other),
        risk_ratio=rate / other if failures_outside else None,
        ratio_interval=Interval(low=low, high=high, level=level),
    )


class ClassFindingKind(StrEnum):
    """What is said of a class."""

    WHOLE = "fails as a whole"
    CONFUSED = "confused"
    SHIFT = "looks unlike training"
    UNTRAINED = "no training images"
    DRIFT = "changes over a column"


class ClassFinding(Record):
    """One statement on a class, tested on samples that did not choose it.

    Args:
        kind: what is said.
        class_name: the true class it is said of.
        other_class: the class that it is taken for (`CONFUSED`, and `WHOLE` if there is one that most failures go to).
        verdict: what the evidence allows to say; `UNTRAINED` is counted, not tested, and always confirmed.
        sentence: the finding in words with its figures, as the terminal, the report and the page print it.
        n_samples: evaluation samples of the class that it was measured on.
        n_failed: those of them that fail (as `kind` counts: all failures, those taken for `other_class`, ...).
        rate: `n_failed / n_samples`, for `SHIFT` how well a held-out test tells evaluation from training images (AUC).
        interval: of `rate`.
        reference: what `rate` is compared with: the other classes' rate, the reverse or usual confusion, 0.5 for `SHIFT`.
        p_value: None where nothing is tested.
        q_value: over everything that these samples were asked.
        n_training: training samples of the class; None if training samples are not known.
        words_here: words that fit evaluation images better than training images; empty if none is known to fit.
        words_there: words that fit training images better.
        examples_here: ids of evaluation samples that show it best, none of them from the confirmation half.
        examples_there: ids of training samples to put beside them.
        column: the column of `DRIFT`.
        value: its value at which the class fails.
        batch: as in `Evidence`.
        question: as in `Evidence`.
    """

    kind: ClassFindingKind
    class_name: str
    other_class: str = ""
    verdict: Verdict
    sentence: str
    n_samples: int = 0
    n_failed: int = 0
    rate: float = 0.0
    interval: Interval | None = None
    reference: float | None = None
    p_value: float | None = None
    q_value: float | None = None
    n_training: int | None = None
    words_here: tuple[str, ...] = ()
    words_there: tuple[str, ...] = ()
    examples_here: tuple[str, ...] = ()
    examples_there: tuple[str, ...] = ()
    column: str = ""
    value: str = ""
    batch: int = 0
    question: str = ""

    @property
    def finding_id(self) -> str:
        """Return a short name that stays the same from run to run."""
        parts = (self.kind, self.class_name, self.other_class, self.column, self.value)
        return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:12]

    @property
    def is_confirmed(self) -> bool:
        return self.verdict is Verdict.CONFIRMED


class Spread(Record):
    """How unevenly a classifier serves the groups of a repair: slices, the rest of their classes, and all other classes.

    Args:
        worst_group: the group with the lowest accuracy after.
        worst_before: lowest accuracy of a group before; groups are the same before and after, the worst may be another.
        worst_after: lowest accuracy of a group after.
        average_before: mean accuracy over groups before.
        average_after: mean accuracy over groups after.
        gap_before: overall accuracy minus the lowest before.
        gap_after: overall accuracy minus the lowest after.
        worst_change: interval of the change of the lowest accuracy, by a paired bootstrap over samples, or over groups of samples.
        gap_change: interval of the change of the gap, by the same.
    """

    worst_group: str
    worst_before: float
    worst_after: float
    average_before: float
    average_after: float
    gap_before: float
    gap_after: float
    worst_change: Interval
    gap_change: Interval


class GivenGroup(Record):
    """One group that somebody named: a class and a value of a column.

    Args:
        group: its name.
        n_samples: its size.
        accuracy_before: share that was right before.
        accuracy_after: share that is right after.
    """

    group: str
    n_samples: int
    accuracy_before: float
    accuracy_after: float


class GivenGroups(Record):
    """Worst, average and gap over groups that somebody named, which no method of discovery has seen.

    The papers' worst-group accuracy is `spread.worst_after`, their average `overall_after`, and their gap the difference.

    Args:
        column: the column whose values, with the class, are the groups.
        overall_before: share of all measured samples that was right before.
        overall_after: share that is right after.
        groups: every group, also those that are too small to be the worst.
        n_small: groups with too few samples to be the worst.
        spread: the worst, the mean over groups and the gap; None if fewer than two groups are large enough.
    """

    column: str
    overall_before: float
    overall_after: float
    groups: tuple[GivenGroup, ...]
    n_small: int = 0
    spread: Spread | None = None
