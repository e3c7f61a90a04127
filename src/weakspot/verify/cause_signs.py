"""What speaks for a cause: a look that works as a cue, a class that looks alike, a look that is rare in training."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, IntArray
from weakspot.core.dataset import Task, several_to_a_group
from weakspot.core.evidence import Share
from weakspot.core.failures import predicted_classes
from weakspot.core.group_tests import effective_number, group_p
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.verify.pair_probe import PairProbe, pair_rows, unit_embeddings

MIN_DEEP = 3


@dataclass(frozen=True, kw_only=True)
class Presence:
    """Members deep inside a slice, at least as deep as half of its failing members.

    Args:
        in_training: of the class's training samples.
        in_evaluation: of its evaluation samples.
        share: estimate of the kind's share of the class in training.
    """

    in_training: Share
    in_evaluation: Share
    share: float

    @property
    def ratio(self) -> float:
        """Return how common the kind is in training, as a part of how common it is in evaluation."""
        return self.in_training.value / self.in_evaluation.value


def presence_of(
    trained: DoubleArray,
    scores: DoubleArray,
    failed: BoolArray,
    inside: BoolArray,
    *,
    level: float,
    worth: tuple[float, float] = (1.0, 1.0),
) -> Presence | None:
    """Return how common the failing kind is, None if there are too few failing members to tell.

    Args:
        trained: scores of the class's training samples.
        scores: scores of its evaluation samples [n].
        failed: which of these failed [n].
        inside: which of these are members [n].
        level: of the intervals.
        worth: how many independent samples one is worth, in training and in evaluation.
    """
    failing = scores[failed & inside]
    if len(failing) < MIN_DEEP or not len(trained):
        return None
    depth = float(np.median(failing))
    deep = scores >= depth
    in_training = Share.of(
        int((trained >= depth).sum()),
        len(trained),
        level=level,
        effective=worth[0] * len(trained),
    )
    in_evaluation = Share.of(
        int(deep.sum()), len(scores), level=level, effective=worth[1] * len(scores)
    )
    # If the kind fails at the rate seen deep inside and the rest at that outside, the class's own rate tells the kind's share.
    rate, rest = (
        float(failed[deep].mean()),
        float(failed[~inside].mean()) if (~inside).any() else 0.0,
    )
    kind = (float(failed.mean()) - rest) / max(rate - rest, 1e-9)
    kind = float(np.clip(kind, in_evaluation.value, 1.0))
    ratio = in_training.value / in_evaluation.value
    return Presence(in_training=in_training, in_evaluation=in_evaluation, share=ratio * kind)


def worth_of(samples: SampleSet, rows: IntArray) -> float:
    """Return how many independent samples one of the rows is worth on average, 1 if every one is on its own."""
    groups = several_to_a_group(samples.dataset.groups[rows])
    everybody = np.ones(len(rows), dtype=np.bool_)
    return 1.0 if groups is None else effective_number(groups, everybody) / len(rows)


MIN_LACKING = 10
MIN_CARRYING = 20
MIN_TAKEN = 3
CLEAR_P = 0.001
SEEN_P = 0.05
ABSENT_P = 0.1
CLEAR_RATIO = 2.0


@dataclass(frozen=True, kw_only=True)
class CueSigns:
    """What other classes say of a cue; tables are (count, of, count elsewhere, of).

    Args:
        rival: failures of the rival's evaluation samples that lack the look, and of the others.
        thirds: samples of third classes that carry the look and are taken for the rival, and of those that do not carry it.
        thirds_p: that carrying it matters, class by class.
        direction_p: that, of third classes' failures, those that carry it go to the rival more than the others do.
        training: the rival's training samples that lie far below its middle, and far above: where most carry a look, those that
            lack it stand out below. None for a look that is read off a column.
        rival_p: that lacking it does not matter in the rival.
        worth: how many independent samples a training sample of the rival is worth.
    """

    rival: tuple[int, int, int, int]
    thirds: tuple[int, int, int, int]
    thirds_p: float
    direction_p: float
    training: tuple[int, int] | None
    rival_p: float
    worth: float = 1.0

    @property
    def training_p(self) -> float:
        """Return the chance of so many more below than above if both were as likely; 0 for a column, whose shares are counted."""
        if self.training is None:
            return 0.0
        from scipy.special import betainc

        below, above = (count * self.worth for count in self.training)
        return float(betainc(below, above + 1, 0.5)) if below else 1.0

    @property
    def is_testable(self) -> bool:
        return self.rival[1] >= MIN_LACKING or self.thirds[1] >= MIN_CARRYING

    @property
    def is_seen_in_thirds(self) -> bool:
        taken, n_carrying, others, n_others = self.thirds
        if not n_carrying or not n_others or taken < MIN_TAKEN:
            return False
        is_larger = taken / n_carrying >= CLEAR_RATIO * others / n_others
        is_clear = self.thirds_p <= CLEAR_P and self.direction_p <= SEEN_P
        # Most of the rival must carry the look; where most lack it, those that carry it stand out above.
        return (
            is_larger
            and is_clear
            and (self.training is None or self.training[0] > self.training[1])
        )

    @property
    def is_seen_in_rival(self) -> bool:
        return self.rival_p <= CLEAR_P and self.training_p <= SEEN_P

    @property
    def is_absent(self) -> bool:
        """Return whether nothing hints at a cue, so that other causes may be named."""
        is_quiet = min(self.rival_p, max(self.thirds_p, self.direction_p)) > ABSENT_P
        return is_quiet and (self.training is None or self.training_p > ABSENT_P)


def column_signs(found: FailureSlice, rival: str, evaluation: SampleSet) -> CueSigns:
    """Return the signs of a look that every sample is known to carry or not."""
    rows, own, other = _other_rows(found, rival, evaluation)
    carries = found.rule.members(evaluation, rows)
    return _signs(evaluation, rows, carries, lacks=~carries, codes=(own, other), training=None)


def score_signs(
    found: FailureSlice, rival: str, training: SampleSet, evaluation: SampleSet, *, distance: float
) -> CueSigns:
    """Return the signs of a look that is only known as a direction.

    Classes lie anywhere along it, so a sample carries the look if it lies half the distance above the middle of its own class, and
    lacks it half the distance below: `distance` is how far failing members lie from the rest of their own class.
    """
    rows, own, other = _other_rows(found, rival, evaluation)
    labels = training.dataset.labels
    known = training.rows[labels[training.rows] >= 0]
    scores = found.rule.scores(training, known)
    middles = np.full(training.dataset.n_classes, np.nan)
    for code in np.unique(labels[known]):
        of_class = scores[labels[known] == code]
        middles[code] = np.nanmedian(of_class) if np.isfinite(of_class).any() else np.nan
    offsets = found.rule.scores(evaluation, rows) - middles[labels[rows]]
    is_known = np.isfinite(offsets)
    rows, offsets = rows[is_known], offsets[is_known]
    of_rival = scores[labels[known] == other] - middles[other]
    skew = int((of_rival < -distance / 2).sum()), int((of_rival > distance / 2).sum())
    return _signs(
        evaluation,
        rows,
        offsets > distance / 2,
        lacks=offsets < -distance / 2,
        codes=(own, other),
        training=skew,
        worth=worth_of(training, known[labels[known] == other]),
    )


def _other_rows(
    found: FailureSlice, rival: str, evaluation: SampleSet
) -> tuple[IntArray, int, int]:
    dataset = evaluation.dataset
    own, other = dataset.class_code(found.class_name), dataset.class_code(rival)
    rows = evaluation.rows[dataset.labels[evaluation.rows] >= 0]
    rows = rows[dataset.labels[rows] != own]
    return rows[predicted_classes(dataset, rows) >= 0], own, other


def _signs(
    evaluation: SampleSet,
    rows: IntArray,
    carries: BoolArray,
    *,
    lacks: BoolArray,
    codes: tuple[int, int],
    training: tuple[int, int] | None,
    worth: float = 1.0,
) -> CueSigns:
    labels = evaluation.dataset.labels[rows]
    answers = predicted_classes(evaluation.dataset, rows)
    is_rival = labels == codes[1]
    fails, taken = answers != labels, answers == codes[1]
    third = ~is_rival
    astray = third & fails
    groups = several_to_a_group(evaluation.dataset.groups[rows])

    def of(chosen: BoolArray) -> IntArray | None:
        return None if groups is None else groups[chosen]

    return CueSigns(
        rival=_table(fails[is_rival], lacks[is_rival]),
        thirds=_table(taken[third], carries[third]),
        thirds_p=stratified_p(taken[third], carries[third], labels[third], of(third)),
        direction_p=stratified_p(taken[astray], carries[astray], labels[astray], of(astray)),
        training=training,
        rival_p=group_p(lacks[is_rival], fails[is_rival], of(is_rival)),
        worth=worth,
    )


def _table(hits: BoolArray, inside: BoolArray) -> tuple[int, int, int, int]:
    counts = hits[inside].sum(), inside.sum(), hits[~inside].sum(), (~inside).sum()
    return int(counts[0]), int(counts[1]), int(counts[2]), int(counts[3])


def stratified_p(
    hits: BoolArray, inside: BoolArray, strata: IntArray, groups: IntArray | None = None
) -> float:
    """Return the one-sided p-value of Mantel and Haenszel: that hits are no more frequent inside, stratum by stratum.

    Where samples come in groups [n], the shares of every group take the place of its samples.

    >>> twice = np.array([True] * 8 + [False] * 8)
    >>> round(stratified_p(twice, twice, np.arange(16) % 2), 4)
    0.0005
    """
    excess, variance = 0.0, 0.0
    for one in np.unique(strata):
        here = strata == one
        if groups is not None:
            more, spread = _excess_of_groups(hits[here], inside[here], groups[here])
            excess, variance = excess + more, variance + spread
            continue
        n_all, n_hits, n_inside = int(here.sum()), int(hits[here].sum()), int(inside[here].sum())
        if n_all <= 1:
            continue
        excess += int((hits & inside & here).sum()) - n_hits * n_inside / n_all
        free = n_hits * (n_all - n_hits) * n_inside * (n_all - n_inside)
        variance += free / (n_all**2 * (n_all - 1))
    return _upper_tail((excess - 0.5) / np.sqrt(variance)) if variance > 0 else 1.0


def _excess_of_groups(hits: BoolArray, inside: BoolArray, groups: IntArray) -> tuple[float, float]:
    """Return how much more hits there are inside than if shares of groups were permuted, and the variance of that."""
    _, codes = np.unique(groups, return_inverse=True)
    sizes = np.bincount(codes)
    if len(sizes) <= 1:
        return 0.0, 0.0
    first, second = (np.bincount(codes, weights=one) / sizes for one in (hits, inside))
    first, second = first - first.mean(), second - second.mean()
    spread = float((first**2).sum() * (second**2).sum()) / (len(sizes) - 1)
    return float((first * second).sum()), spread


def _upper_tail(value: float | DoubleArray) -> float:
    from scipy.special import ndtr

    return float(ndtr(-value))


N_NEIGHBOURS = 15
MAX_FAILURES = 200


@dataclass(frozen=True, kw_only=True)
class LookAlike:
    """How failures lie between their class and a rival.

    Args:
        either: failures that lie in the bulk of both classes.
        rival_only: share of failures that lie where only the rival lies.
        told_apart: how often training samples around the failures have the label of most of their own neighbours.
        back: samples of the rival that are taken for the class.
        elsewhere: samples of the rival that are taken for a third class, on average over these.
    """

    either: Share
    rival_only: float
    told_apart: float
    back: Share | None
    elsewhere: float

    @property
    def is_mutual(self) -> bool:
        """Return whether the rival is taken for the class, and more often than for others."""
        return self.back is None or (self.back.count > 0 and self.back.value >= self.elsewhere)


def look_alike(
    found: FailureSlice,
    rival: str | None,
    failing: IntArray,
    *,
    training: SampleSet,
    evaluation: SampleSet,
    space: str,
    level: float,
) -> LookAlike | None:
    """Return how failures lie between the class and its rival, None if there are no embeddings or too few of them.

    Args:
        found: the slice.
        rival: the class that these failures are taken for; None in a multi-label task, where it is the other side.
        failing: rows.
        training: whose labels are asked.
        evaluation: whose failures they are.
        space: whose embeddings are read; better not the classifier's own, which shares its mistakes.
        level: of the intervals.
    """
    if space not in training.spaces or space not in evaluation.spaces:
        return None
    own, other = pair_rows(training, found.class_name, found.side, rival)
    probe = PairProbe.of(training, own, other, space)
    asked = failing[:: max(1, len(failing) // MAX_FAILURES)]
    embeddings = unit_embeddings(evaluation, asked, space)
    if probe is None or not len(embeddings):
        return None
    either = probe.is_either(embeddings)
    back, elsewhere = _mutual(found, rival, evaluation, level)
    return LookAlike(
        either=Share.of(int(either.sum()), len(either), level=level),
        rival_only=float(probe.is_rival_only(embeddings).mean()),
        told_apart=probe.told_apart(embeddings, N_NEIGHBOURS),
        back=back,
        elsewhere=elsewhere,
    )


def _mutual(
    found: FailureSlice, rival: str | None, evaluation: SampleSet, level: float
) -> tuple[Share | None, float]:
    dataset = evaluation.dataset
    if rival is None or dataset.task is not Task.SINGLE_LABEL:
        return None, 0.0
    own, other = dataset.class_code(found.class_name), dataset.class_code(rival)
    rows = evaluation.rows[dataset.labels[evaluation.rows] == other]
    answers = predicted_classes(dataset, rows)
    rows, answers = rows[answers >= 0], answers[answers >= 0]
    if not len(answers):
        return None, 0.0
    effective = worth_of(evaluation, rows) * len(answers)
    back = Share.of(int((answers == own).sum()), len(answers), level=level, effective=effective)
    n_elsewhere = int(((answers != own) & (answers != other)).sum())
    return back, n_elsewhere / len(answers) / max(dataset.n_classes - 2, 1)
