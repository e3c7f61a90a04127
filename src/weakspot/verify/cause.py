"""Why a confirmed slice fails and what its samples are taken for, as far as training data and wrong answers tell."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, floor

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.bounds import Fraction, check_bounds
from weakspot.core.dataset import Dataset, Task
from weakspot.core.evidence import (
    Cause,
    CauseFinding,
    ConfusedWith,
    Evidence,
    Share,
    SliceSides,
    Verdict,
    sides_of,
)
from weakspot.core.failures import (
    ClassProblem,
    FailureCriterion,
    Side,
    class_problems,
    predicted_classes,
)
from weakspot.core.group_tests import group_p
from weakspot.core.rules import IdRule, Rule, single_rules
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.core.statistics import fisher_p
from weakspot.verify.cause_signs import (
    CueSigns,
    LookAlike,
    Presence,
    column_signs,
    look_alike,
    presence_of,
    score_signs,
    worth_of,
)

NO_TRAINING = "Why is unknown; training rows would tell."
MAY_BE_CUE = "Whether this is a cue of another class cannot be told from these samples, so no cause is named."
NO_EMBEDDINGS = (
    "Without embeddings, look-alike classes and wrong labels cannot be told from a hard kind."
)
NEARLY_ALIKE = "Part of the failures lies apart from their own class, so look-alike classes and wrong labels cannot be excluded."
RARE_OR_MORE = (
    "Training has fewer of them; whether they are rare there or only less common cannot be told."
)
FEWER_BY_CHANCE = "Training may have fewer of them; there are too few samples to tell."


def class_words(found: FailureSlice) -> str:
    return f"samples without {found.class_name}" if found.side is Side.ABSENT else found.class_name


def figures(share: Share) -> str:
    """Return a share with what is behind it, for example `10 % (2 of 20, interval 3–30 %)`."""
    return (
        f"{100 * share.value:.0f} % ({share.count} of {share.total}, "
        f"interval {100 * share.interval.low:.0f}–{100 * share.interval.high:.0f} %)"
    )


def shares_sentence(
    found: FailureSlice,
    own: Share | None,
    here: Share | None,
    rival: str | None,
    in_rival: Share | None,
) -> str:
    parts, class_name = [], class_words(found)
    if own is not None and here is not None:
        parts.append(
            f"Such samples make up {figures(own)} of {class_name} in training and {figures(here)} in evaluation."
        )
    elif own is None:
        parts.append(
            f"Too few training samples of {class_name} with embeddings to say how common such samples are there."
        )
    if rival is not None and in_rival is not None:
        where = "the training samples of " if own is not None else ""
        parts.append(f"The same look is found on {figures(in_rival)} of {where}{rival}.")
    return " ".join(parts)


def cue_sentences(rival: str, signs: CueSigns | None) -> tuple[str, ...]:
    """Return what other classes show of a cue."""
    found = []
    if signs is None or not signs.is_testable:
        return ("Other classes have too few samples to show the cue at work.",)
    if signs.is_seen_in_thirds:
        taken, n_carrying, others, n_others = signs.thirds
        found.append(
            f"Samples of third classes with this look are taken for {rival} in {taken} of {n_carrying} cases, "
            f"without it in {others} of {n_others}."
        )
    if signs.is_seen_in_rival:
        failures, n_lacking, others, n_others = signs.rival
        found.append(
            f"Without it, {failures} of {n_lacking} samples of {rival} fail, {others} of {n_others} of the others."
        )
    return tuple(found)


def presence_sentence(presence: Presence) -> str:
    return (
        f"As deep inside as half of the failures lie {figures(presence.in_training)} of the class in training and "
        f"{figures(presence.in_evaluation)} in evaluation."
    )


def alike_sentence(found: FailureSlice, rival: str | None, alike: LookAlike) -> str:
    other = rival or ("samples with it" if found.side is Side.ABSENT else "samples without it")
    back = (
        ""
        if alike.back is None
        else f" {alike.back.count} of {alike.back.total} samples of {other} are taken for {found.class_name} in turn."
    )
    return (
        f"{alike.either.count} of {alike.either.total} of these failures lie where training has {class_words(found)} and {other} "
        f"alike; training samples around them have the label of most of their neighbours in {100 * alike.told_apart:.0f} % of cases.{back}"
    )


def confused_with_sentence(found: FailureSlice, confused_with: ConfusedWith) -> str:
    among, others = confused_with.among_failures, confused_with.among_other_failures
    if confused_with.is_real:
        elsewhere = (
            f", as are {others.count} of the {others.total} failures outside"
            if others.total
            else ""
        )
        return (
            f"“{found.title}” become {confused_with.answer}: {figures(confused_with.inside)}, "
            f"against {figures(confused_with.outside)} of the other "
            f"{class_words(found)} samples. {among.count} of the {among.total} failures inside are taken for "
            f"{confused_with.answer}{elsewhere}."
        )
    return (
        f"No wrong answer stands out: the most frequent is {confused_with.answer}, "
        f"with {among.count} of {among.total} failures inside and "
        f"{others.count} of {others.total} outside."
    )


CHUNK_ROWS = 65_536
MOST = 0.5


@dataclass(frozen=True, kw_only=True, eq=False)
class Case:
    """A slice with the samples it is judged on.

    Args:
        found: the slice.
        training: training samples.
        evaluation: the samples it was confirmed on.
        sides: the class's evaluation samples inside and outside.
        own: share of members among the class's training samples, None if there are too few or a listing does not tell.
        here: the same in evaluation.
        confused_with: where failures go.
        worth: how many independent samples a sample of the class is worth, in training and in evaluation; less than 1 in groups.
    """

    found: FailureSlice
    training: SampleSet
    evaluation: SampleSet
    sides: SliceSides
    own: Share | None
    here: Share | None
    confused_with: ConfusedWith | None
    worth: tuple[float, float] = (1.0, 1.0)

    @property
    def is_single_label(self) -> bool:
        return self.evaluation.dataset.task is Task.SINGLE_LABEL

    @property
    def rival(self) -> str | None:
        """Return the class that most failures inside go to, and more of them than of the others; None if there is none."""
        confused_with = self.confused_with
        is_clear = (
            confused_with is not None
            and confused_with.is_real
            and confused_with.among_failures.value > MOST
        )
        return confused_with.answer if confused_with is not None and is_clear else None

    @property
    def has_one_alternative(self) -> bool:
        """Return whether failures go one way: to one class, or in a multi-label task to the other side."""
        return self.rival is not None or not self.is_single_label

    def failing(self) -> IntArray:
        """Return the failures inside, of a single-label task those that are taken for the rival."""
        problem = self.sides.problem
        if problem is None:
            return np.zeros(0, dtype=np.int64)
        rows = problem.rows[self.sides.inside & problem.failed]
        if self.rival is None:
            return rows
        dataset = self.evaluation.dataset
        is_taken = predicted_classes(dataset, rows) == dataset.class_code(self.rival)
        return np.asarray(rows[is_taken], dtype=np.int64)


def reads_columns_only(rule: Rule) -> bool:
    """Return whether membership is read off columns, so that it is the same in every class."""
    return all(single.columns for single in single_rules(rule))


def lacks_columns(rule: Rule, samples: SampleSet, rows: IntArray) -> bool:
    """Return whether a column that membership is read off says nothing of any row: then nobody knows who is a member."""
    columns = {name for single in single_rules(rule) for name in single.columns}
    told = (samples.dataset.metadata(name).take(rows) for name in columns)
    return any(column.null_count == len(rows) for column in told)


def answers_of(dataset: Dataset, sides: SliceSides, *, is_inside: bool) -> Counter[int]:
    """Return how often failures on one side get which answer."""
    problem = sides.problem
    if problem is None:
        return Counter()
    failing = problem.rows[(sides.inside if is_inside else sides.outside) & problem.failed]
    return Counter(predicted_classes(dataset, failing).tolist())


def shares_by_class(
    found: FailureSlice, samples: SampleSet, *, least: int, level: float
) -> dict[str, Share]:
    """Return the share of members in every class that has enough samples."""
    dataset = samples.dataset
    counts, totals = np.zeros((2, dataset.n_classes), dtype=np.int64)
    labelled = samples.rows[dataset.is_labelled[samples.rows]]
    for start in range(0, len(labelled), CHUNK_ROWS):
        rows = labelled[start : start + CHUNK_ROWS]
        is_known = np.isfinite(found.rule.scores(samples, rows))
        inside = found.rule.members(samples, rows) & is_known
        totals += np.bincount(dataset.labels[rows[is_known]], minlength=dataset.n_classes)
        counts += np.bincount(dataset.labels[rows[inside]], minlength=dataset.n_classes)
    worth = {
        name: worth_of(samples, labelled[dataset.labels[labelled] == code])
        for code, name in enumerate(dataset.class_names)
    }
    return {
        name: Share.of(int(count), int(total), level=level, effective=float(total) * worth[name])
        for name, count, total in zip(dataset.class_names, counts, totals, strict=True)
        if total >= least
    }


def is_larger(
    share: Share, other: Share, *, largest_p: float, worth: tuple[float, float] = (1.0, 1.0)
) -> bool:
    """Return whether a share is larger than another one beyond chance; samples in groups count as what they are worth."""
    table = (
        floor(share.count * worth[0]),
        round(share.total * worth[0]),
        min(ceil(other.count * worth[1]), round(other.total * worth[1])),
        round(other.total * worth[1]),
    )
    return fisher_p(*table) <= largest_p


def confused_with_of(
    found: FailureSlice, dataset: Dataset, sides: SliceSides, *, largest_p: float, level: float
) -> ConfusedWith | None:
    """Return what failing members are mostly taken for; single-label only."""
    if dataset.task is not Task.SINGLE_LABEL or sides.problem is None:
        return None
    inside, outside = (
        answers_of(dataset, sides, is_inside=True),
        answers_of(dataset, sides, is_inside=False),
    )
    wrong = {
        code: count
        for code, count in inside.items()
        if dataset.class_names[code] != found.class_name
    }
    if not wrong:
        return None
    answer = min(wrong, key=lambda code: (-wrong[code], code))
    _, n_inside, _, n_outside = sides.table
    taken, others = wrong[answer], outside.get(answer, 0)
    p_value = min(1.0, len(wrong) * taken_p(dataset, sides, answer))
    failures = failures_of(sides)
    effective, among_effective = sides.effective, failures.effective
    among = Share.of(taken, sum(inside.values()), level=level, effective=among_effective[0])
    others_among = Share.of(
        others, sum(outside.values()), level=level, effective=among_effective[1]
    )
    blank = ConfusedWith(
        answer=dataset.class_names[answer],
        inside=Share.of(taken, n_inside, level=level, effective=effective[0]),
        outside=Share.of(others, n_outside, level=level, effective=effective[1]),
        among_failures=among,
        among_other_failures=others_among,
        p_value=p_value,
        is_real=p_value <= largest_p
        and (among.value > MOST or taken_p(dataset, failures, answer) <= largest_p),
    )
    return blank.model_copy(update={"sentence": confused_with_sentence(found, blank)})


def failures_of(sides: SliceSides) -> SliceSides:
    """Return the failures alone, inside and outside."""
    if sides.problem is None:
        return sides
    failed = sides.problem.failed
    return replace(sides, inside=sides.inside & failed, outside=sides.outside & failed)


def taken_p(dataset: Dataset, sides: SliceSides, answer: int) -> float:
    """Return the p-value that members are taken for a class no more often than the others; groups count once."""
    problem, known = sides.problem, sides.inside | sides.outside
    if problem is None:
        return 1.0
    taken = problem.failed & (predicted_classes(dataset, problem.rows) == answer)
    groups = None if problem.groups is None else problem.groups[known]
    return group_p(sides.inside[known], taken[known], groups)


AS_COMMON = 0.67


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What a case is held to be.

    Args:
        cause: the verdict.
        signs: what speaks for it or, where it is unknown, what is missing; one sentence each.
        cue: the class that the look belongs to and how common it is there.
    """

    cause: Cause
    signs: tuple[str, ...] = ()
    cue: tuple[str, Share] | None = None


@dataclass(frozen=True, kw_only=True)
class CauseFinder:
    """Weighs explanations by figures, and names one only if it has evidence of its own and nothing speaks for another.

    Args:
        rare_share: rare if members make up less than this share of the class's training samples,
        rare_count: or if there are fewer of them and their share is below `shift_ratio` times that in evaluation.
        shift_ratio: more common than in training if the share in training is below this part of the share in evaluation.
        cue_share: a cue is spurious if samples that carry it are at least this share of another class in training,
        cue_ratio: at least so many times their share in the true class, members are taken for that class more often than the
            rest, and other classes show the cue at work, where they can.
        either_share: classes look alike if at least this share of the failures between them lies in the bulk of both classes,
        told_apart: and training samples around these failures have the label of most of their neighbours at most so often.
        space: whose embeddings tell whether classes look alike.
        rare_margin: where membership is a rule on embeddings, shares in training are estimates; within this factor of
            `rare_share` it is not said whether a kind is rare or only more common than in training.
        min_training: least number of training samples of a class for its shares to count.
        largest_p: differences of shares with a larger p-value may be chance and are not called a cause.
        level: of the intervals.
    """

    rare_share: Fraction = 0.05
    rare_count: int = 10
    shift_ratio: Fraction = 0.5
    cue_share: Fraction = 0.5
    cue_ratio: float = 3.0
    either_share: Fraction = 0.5
    told_apart: Fraction = 0.9
    space: str = "clip"
    rare_margin: float = 1.5
    min_training: int = 10
    largest_p: Fraction = 0.05
    level: float = 0.95

    def __post_init__(self) -> None:
        check_bounds(self)

    def explain(
        self,
        slices: Sequence[FailureSlice],
        evidence: Sequence[Evidence],
        *,
        training: SampleSet,
        evaluation: SampleSet,
        criterion: FailureCriterion,
    ) -> tuple[Evidence, ...]:
        """Return the same evidence, in the same order, with a cause for every confirmed slice."""
        by_id = {found.slice_id: found for found in slices}
        wanted = {
            entry.slice_id for entry in evidence if entry.verdict is Verdict.CONFIRMED
        } & by_id.keys()
        problems = class_problems(evaluation.dataset, evaluation.rows, criterion) if wanted else ()
        causes = {name: self._cause(by_id[name], training, evaluation, problems) for name in wanted}
        return tuple(
            entry.model_copy(update={"cause": causes[entry.slice_id]})
            if entry.verdict is Verdict.CONFIRMED and entry.slice_id in causes
            else entry
            for entry in evidence
        )

    def cause(
        self,
        found: FailureSlice,
        training: SampleSet,
        evaluation: SampleSet,
        criterion: FailureCriterion,
    ) -> CauseFinding:
        return self._cause(
            found,
            training,
            evaluation,
            class_problems(evaluation.dataset, evaluation.rows, criterion),
        )

    def _cause(
        self,
        found: FailureSlice,
        training: SampleSet,
        evaluation: SampleSet,
        problems: Sequence[ClassProblem],
    ) -> CauseFinding:
        sides = sides_of(found, evaluation, problems)
        learnt = found.class_rows(training)
        own = self._share(found, training, learnt)
        is_listed = any(isinstance(one, IdRule) for one in single_rules(found.rule))
        if is_listed or lacks_columns(found.rule, training, learnt):
            own = None
        here = self._share(found, evaluation, found.class_rows(evaluation), least=1)
        confused_with = confused_with_of(
            found, evaluation.dataset, sides, largest_p=self.largest_p, level=self.level
        )
        case = Case(
            found=found,
            training=training,
            evaluation=evaluation,
            sides=sides,
            own=own,
            here=here,
            confused_with=confused_with,
            worth=(
                worth_of(training, found.class_rows(training)),
                worth_of(evaluation, found.class_rows(evaluation)),
            ),
        )
        alike = self._alike(case)
        judged = self._judge(case, alike)
        rival, in_rival = judged.cue or self._answer_share(found, training, confused_with)
        shares = shares_sentence(found, own, here, rival, in_rival)
        return CauseFinding(
            cause=judged.cause,
            share_training=None if own is None else own.value,
            share_evaluation=None if here is None else here.value,
            dominant_prediction=None if confused_with is None else confused_with.answer,
            dominant_share=None if confused_with is None else confused_with.among_failures.value,
            sentence=" ".join([shares, *judged.signs]).strip(),
            in_training=own,
            in_evaluation=here,
            rival=rival,
            in_rival=in_rival,
            confused_with=confused_with,
            either=None if alike is None else alike.either,
            told_apart=None if alike is None else alike.told_apart,
            signs=judged.signs,
        )

    def _judge(self, case: Case, alike: LookAlike | None) -> Judgement:
        if case.own is None or case.here is None:
            return self._judge_table(case)
        if reads_columns_only(case.found.rule):
            return self._judge_column(case, alike, case.own, case.here)
        return self._judge_scores(case, alike)

    def _judge_table(self, case: Case) -> Judgement:
        """Judge a slice of a class without training samples: the evaluation samples may show a cue, and nothing else."""
        unknown = Judgement(cause=Cause.UNKNOWN, signs=(NO_TRAINING,))
        rule = case.found.rule
        if not reads_columns_only(rule) or not case.is_single_label or case.here is None:
            return unknown
        cue = self._cue(case, case.evaluation, case.here)
        if cue is None or cue[0] != case.rival:
            return unknown
        signs = column_signs(case.found, cue[0], case.evaluation)
        if not signs.is_seen_in_thirds and not signs.is_seen_in_rival:
            return unknown
        return Judgement(cause=Cause.SPURIOUS, signs=cue_sentences(cue[0], signs), cue=cue)

    def _judge_column(
        self, case: Case, alike: LookAlike | None, own: Share, here: Share
    ) -> Judgement:
        cue, signs = self._cue(case, case.training, own), None
        if cue is not None and case.is_single_label:
            signs = column_signs(case.found, cue[0], case.evaluation)
        if cue is not None and _is_cue(signs):
            said = cue_sentences(cue[0], signs)
            return Judgement(cause=Cause.SPURIOUS, signs=said, cue=cue)
        may_be_cue = signs is not None and not signs.is_absent
        is_less = own.value < self.shift_ratio * here.value
        is_rare = own.value < self.rare_share or (
            own.count * case.worth[0] < self.rare_count and is_less
        )
        if is_rare or (is_less and self._is_larger(here, own, case.worth[::-1])):
            if may_be_cue:
                return Judgement(cause=Cause.UNKNOWN, signs=(MAY_BE_CUE,))
            return Judgement(cause=Cause.RARE if is_rare else Cause.SHIFT)
        if own.value < AS_COMMON * here.value:
            return Judgement(cause=Cause.UNKNOWN, signs=(FEWER_BY_CHANCE,))
        return self._judge_common(case, alike, may_be_cue=may_be_cue)

    def _judge_scores(self, case: Case, alike: LookAlike | None) -> Judgement:
        """Judge a slice whose rule reads embeddings: how many it takes in says little, so every cause needs evidence of its own."""
        signs = self._score_signs(case)
        is_alike = alike is not None and self._is_alike(alike)
        is_cue = signs is not None and (
            signs.is_seen_in_thirds or (signs.is_seen_in_rival and not is_alike)
        )
        if signs is not None and is_cue and case.rival is not None:
            cue = self._answer_share(case.found, case.training, case.confused_with)
            return Judgement(
                cause=Cause.SPURIOUS,
                signs=cue_sentences(case.rival, signs),
                cue=(case.rival, cue[1]) if cue[1] is not None else None,
            )
        presence = self._presence(case)
        if presence is None:
            return Judgement(cause=Cause.UNKNOWN, signs=(FEWER_BY_CHANCE,))
        said, may_be_cue = (
            presence_sentence(presence),
            signs is not None and not signs.is_absent,
        )
        if self._is_larger(presence.in_evaluation, presence.in_training, case.worth[::-1]):
            judged = self._judge_fewer(presence)
            if may_be_cue or is_alike or (alike is not None and self._is_astray(alike)):
                judged = Judgement(cause=Cause.UNKNOWN, signs=(MAY_BE_CUE,))
        elif (
            presence.ratio < AS_COMMON
            or presence.in_training.count * case.worth[0] < self.rare_count
        ):
            judged = Judgement(cause=Cause.UNKNOWN, signs=(FEWER_BY_CHANCE,))
        else:
            judged = self._judge_common(case, alike, may_be_cue=may_be_cue)
        return Judgement(cause=judged.cause, signs=(said, *judged.signs))

    def _judge_fewer(self, presence: Presence) -> Judgement:
        is_near = 1 / self.rare_margin < presence.share / self.rare_share < self.rare_margin
        if presence.ratio >= self.shift_ratio or is_near:
            return Judgement(cause=Cause.UNKNOWN, signs=(RARE_OR_MORE,))
        return Judgement(cause=Cause.RARE if presence.share < self.rare_share else Cause.SHIFT)

    def _judge_common(self, case: Case, alike: LookAlike | None, *, may_be_cue: bool) -> Judgement:
        """Judge a slice that training has its share of."""
        if alike is not None and self._is_alike(alike):
            said = alike_sentence(case.found, case.rival, alike)
            return Judgement(cause=Cause.CONFUSABLE, signs=(said,))
        if may_be_cue:
            return Judgement(cause=Cause.UNKNOWN, signs=(MAY_BE_CUE,))
        if case.has_one_alternative and alike is None:
            return Judgement(cause=Cause.UNKNOWN, signs=(NO_EMBEDDINGS,))
        if alike is not None and self._is_astray(alike):
            return Judgement(cause=Cause.UNKNOWN, signs=(NEARLY_ALIKE,))
        return Judgement(cause=Cause.HARD)

    def _alike(self, case: Case) -> LookAlike | None:
        failing = case.failing()
        if not case.has_one_alternative or not len(failing):
            return None
        return look_alike(
            case.found,
            case.rival,
            failing,
            training=case.training,
            evaluation=case.evaluation,
            space=self.space,
            level=self.level,
        )

    def _is_alike(self, alike: LookAlike) -> bool:
        is_between = alike.either.value >= self.either_share
        return is_between and alike.told_apart <= self.told_apart and alike.is_mutual

    def _is_astray(self, alike: LookAlike) -> bool:
        """Return whether so many failures lie off their own class that a look or a label may be behind it."""
        astray = alike.either.value + alike.rival_only
        return astray >= self.either_share / 2 or alike.told_apart <= self.told_apart

    def _score_signs(self, case: Case) -> CueSigns | None:
        problem, rival = case.sides.problem, case.rival
        if problem is None or rival is None or not case.is_single_label:
            return None
        scores = case.found.rule.scores(case.evaluation, problem.rows)
        failing, rest = case.sides.inside & problem.failed, case.sides.outside & ~problem.failed
        if not failing.any() or not rest.any():
            return None
        distance = float(scores[failing].mean() - scores[rest].mean())
        return score_signs(case.found, rival, case.training, case.evaluation, distance=distance)

    def _presence(self, case: Case) -> Presence | None:
        problem = case.sides.problem
        if problem is None:
            return None
        known = case.sides.inside | case.sides.outside
        trained = case.found.rule.scores(case.training, case.found.class_rows(case.training))
        return presence_of(
            trained[np.isfinite(trained)],
            case.found.rule.scores(case.evaluation, problem.rows[known]),
            problem.failed[known],
            case.sides.inside[known],
            level=self.level,
            worth=case.worth,
        )

    def _cue(self, case: Case, samples: SampleSet, own: Share) -> tuple[str, Share] | None:
        """Return the class that the look of the slice belongs to, if members are pulled to it.

        The class is chosen by how common the look is alone, so one test of where failures go is enough.
        """
        found, dataset, sides = case.found, case.evaluation.dataset, case.sides
        if not case.is_single_label:
            return self._label_cue(found, samples, own)
        shares = shares_by_class(found, samples, least=self.min_training, level=self.level)
        shares.pop(found.class_name, None)
        if not shares:
            return None
        rival = max(shares, key=lambda name: (shares[name].value, name))
        share, code = shares[rival], dataset.class_code(rival)
        worths = [
            worth_of(samples, samples.rows[samples.dataset.labels[samples.rows] == one])
            for one in (code, dataset.class_code(found.class_name))
        ]
        if not self._belongs(share, own, (worths[0], worths[1])):
            return None
        is_pulled = taken_p(dataset, sides, code) <= self.largest_p
        return (rival, share) if is_pulled else None

    def _label_cue(
        self, found: FailureSlice, training: SampleSet, own: Share
    ) -> tuple[str, Share] | None:
        if found.side is not Side.ABSENT:
            return None
        others = found.model_copy(update={"side": Side.PRESENT})
        share = self._share(found, training, others.class_rows(training))
        worth = (
            worth_of(training, others.class_rows(training)),
            worth_of(training, found.class_rows(training)),
        )
        is_cue = share is not None and self._belongs(share, own, worth)
        return (found.class_name, share) if share is not None and is_cue else None

    def _belongs(self, share: Share, own: Share, worth: tuple[float, float]) -> bool:
        """Return whether a look is so common in another class, and so much more than in its own, that it may pass for its cue."""
        return share.value >= max(self.cue_share, self.cue_ratio * own.value) and self._is_larger(
            share, own, worth
        )

    def _answer_share(
        self, found: FailureSlice, training: SampleSet, confused_with: ConfusedWith | None
    ) -> tuple[str | None, Share | None]:
        """Return how common the look is in the class that members are taken for."""
        if confused_with is None or not confused_with.is_real:
            return None, None
        dataset = training.dataset
        code = dataset.class_code(confused_with.answer)
        share = self._share(found, training, training.rows[dataset.labels[training.rows] == code])
        return (None, None) if share is None else (confused_with.answer, share)

    def _is_larger(self, share: Share, other: Share, worth: tuple[float, float]) -> bool:
        return is_larger(share, other, largest_p=self.largest_p, worth=worth)

    def _share(
        self, found: FailureSlice, samples: SampleSet, rows: IntArray, *, least: int | None = None
    ) -> Share | None:
        """Return the share of members among rows, None if there are too few to tell."""
        scores = found.rule.scores(samples, rows) if len(rows) else np.zeros(0)
        known = rows[np.isfinite(scores)]
        worth = worth_of(samples, known) if len(known) else 1.0
        if len(known) * worth < (self.min_training if least is None else least):
            return None
        n_inside = int(found.rule.members(samples, known).sum())
        return Share.of(n_inside, len(known), level=self.level, effective=len(known) * worth)


def _is_cue(signs: CueSigns | None) -> bool:
    """Return whether other classes show the cue at work, or could not if it were."""
    if signs is None or not signs.is_testable:
        return True
    return signs.is_seen_in_thirds or signs.is_seen_in_rival
