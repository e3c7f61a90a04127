"""What was measured on data that was not used to find a slice, and what that proves."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from weakspot.core.arrays import BoolArray, IntArray
from weakspot.core.failures import ClassProblem
from weakspot.core.record import Record
from weakspot.core.rules import MembershipRule
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice, matches
from weakspot.core.statistics import Control, cohens_h, risk_ratio_interval, wilson_interval


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
    def of(cls, count: int, total: int, *, level: float = 0.95) -> "Share":
        """Return the share of a count; 0 with the interval (0, 1) if there is nothing to count."""
        low, high = wilson_interval(count, total, level=level)
        return cls(
            count=count, total=total, value=count / total if total else 0.0, interval=Interval(low=low, high=high, level=level)
        )


class Pull(Record):
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
        pull: where failures go, None for multi-label tasks and without failures.
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
    pull: Pull | None = None


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
    """

    n_suspect: int
    share: float
    inside: Share
    outside: Share
    witnesses: tuple[str, ...]
    is_flagged: bool
    sentence: str = ""


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


class Explanation(Record):
    """Why a confirmed slice is no finding of its own: a stronger one of its class accounts for it.

    Args:
        slice_id: the stronger slice.
        shared_failures: share of the slice's failures that are members of the stronger one.
        n_inside: members of the slice that are in no stronger slice.
        failures_inside: failures among them.
        n_outside: samples of the class that are in neither.
        failures_outside: failures among them.
    """

    slice_id: str
    shared_failures: float
    n_inside: int
    failures_inside: int
    n_outside: int
    failures_outside: int


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
        q_value: error rate, of the kind `control` says, at which this slice would just be published, over all that was tested.
        n_tested: how many slices were tested together.
        verdict: what this allows to say.
        cause: why, if it was looked into.
        control: which error rate is held over all that was tested.
        weight: how much this test counted, fixed on the discovery samples; 1 on average.
        same_as: the slice that was tested in place of this one, because their members are nearly the same.
        effect: how large the gap is; None if one side is empty.
        labels: whether labels look wrong, if it was looked into.
        elsewhere: the slice on other data.
        explained: set if the failures are mostly those of a stronger confirmed slice.
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
    control: Control = "fdr"
    weight: float = 1.0
    same_as: str | None = None
    effect: EffectSize | None = None
    labels: LabelFinding | None = None
    elsewhere: tuple[Measurement, ...] = ()
    explained: Explanation | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class SliceSides:
    """The samples of a class inside and outside a slice; in neither are those whose membership cannot be told for want of a vector.

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
        """Return failures and samples inside, failures and samples outside."""
        if self.problem is None:
            return 0, 0, 0, 0
        failed = self.problem.failed
        counts = (failed[self.inside].sum(), self.inside.sum(), failed[self.outside].sum(), self.outside.sum())
        return int(counts[0]), int(counts[1]), int(counts[2]), int(counts[3])


def sides_of(found: FailureSlice, samples: SampleSet, problems: Sequence[ClassProblem]) -> SliceSides:
    """Return who is inside and who is outside a slice, among the samples of its class."""
    problem = next((one for one in problems if matches(found, one)), None)
    if problem is None:
        nobody = np.zeros(0, dtype=np.bool_)
        return SliceSides(problem=None, inside=nobody, outside=nobody)
    inside = found.inside(samples, problem)
    is_known = _is_known(found.rule, samples, problem.rows)
    return SliceSides(problem=problem, inside=inside & is_known, outside=~inside & is_known)


def _is_known(rule: MembershipRule, samples: SampleSet, rows: IntArray) -> BoolArray:
    """Return for which rows membership can be told: a column or a list says something of everybody, a vector may be missing."""
    if rule.kind == "all-of":
        parts = [_is_known(part, samples, rows) for part in rule.rules]
        return np.asarray(np.all(parts, axis=0), dtype=np.bool_) if parts else np.ones(len(rows), dtype=np.bool_)
    if rule.kind == "any-of":
        is_told = [_is_known(part, samples, rows) for part in rule.rules]
        return np.asarray(np.all(is_told, axis=0) | rule.members(samples, rows), dtype=np.bool_)
    if rule.kind in ("column", "ids"):
        return np.ones(len(rows), dtype=np.bool_)
    return np.isfinite(rule.scores(samples, rows))


def effect_size(table: tuple[int, int, int, int], *, level: float = 0.95) -> EffectSize | None:
    """Return the effect size of failures and samples inside and outside, None if one side is empty."""
    failures_inside, n_inside, failures_outside, n_outside = table
    if not n_inside or not n_outside:
        return None
    rate, other = failures_inside / n_inside, failures_outside / n_outside
    low, high = risk_ratio_interval(*table, level=level)
    return EffectSize(
        cohens_h=cohens_h(rate, other),
        risk_ratio=rate / other if failures_outside else None,
        ratio_interval=Interval(low=low, high=high, level=level),
    )
