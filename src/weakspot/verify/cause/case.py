"""What is counted of one slice before its cause is weighed."""

from collections import Counter
from dataclasses import dataclass, replace
from math import ceil, floor

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.dataset import Dataset, Task
from weakspot.core.evidence import ConfusedWith, Share, SliceSides
from weakspot.core.failures import predicted_classes
from weakspot.core.group_tests import group_p
from weakspot.core.rules import IdRule, Rule, single_rules
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.core.statistics import fisher_p
from weakspot.verify.cause import words
from weakspot.verify.cause.worth import worth_of

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


def has_listed_members(rule: Rule) -> bool:
    """Return whether members are listed: of samples that nobody looked at, such a rule knows nothing."""
    return any(isinstance(single, IdRule) for single in single_rules(rule))


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
    return blank.model_copy(update={"sentence": words.confused_with_sentence(found, blank)})


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
