"""Scores of methods on problems, and the table over all of them."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.group_tests import group_p
from weakspot.core.record import Record
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice, matches
from weakspot_lab.bench.problem import BenchProblem, KnownSlice

MAX_SLICES = 5
MIN_AGREEMENT = 0.5
SameMeaning = Callable[[str, str], bool]


class NameVerdict(Record):
    """How right the first name of a slice is; each step includes the one before."""

    is_exact: bool = False
    is_synonym: bool = False
    is_same_attribute: bool = False


def precision_at(scores: DoubleArray, inside: BoolArray, count: int) -> float:
    """Return the share of true members among the `count` samples with the largest scores.

    >>> precision_at(np.array([0.9, 0.8, 0.1]), np.array([True, False, True]), 2)
    0.5
    """
    known = np.isfinite(scores)
    order = np.argsort(-scores[known], kind="stable")[:count]
    return float(inside[known][order].mean()) if len(order) else 0.0


def best_precision(
    slices: Sequence[FailureSlice],
    truth: KnownSlice,
    samples: SampleSet,
    *,
    count: int,
    n_tried: int = MAX_SLICES,
) -> float:
    """Return the precision of the best of a method's first slices of the class on the given samples; 0 without slices.

    Only the first few slices count, so that a method gains nothing by putting many forward, and complements never do.
    """
    own = [found for found in slices if truth.is_about(found)][:n_tried]
    found_precisions = [0.0]
    for found in own:
        rows = found.class_rows(samples)
        if len(rows):
            found_precisions.append(
                precision_at(
                    found.rule.scores(samples, rows), truth.inside[rows], min(count, len(rows))
                )
            )
    return max(found_precisions)


def agreement(found: FailureSlice, truth: KnownSlice, samples: SampleSet) -> float:
    """Return how well members agree with a known slice: the harmonic mean of precision and recall within the class."""
    if not truth.is_about(found):
        return 0.0
    rows = found.class_rows(samples)
    inside, wanted = found.rule.members(samples, rows), truth.inside[rows]
    total = int(inside.sum() + wanted.sum())
    return 2 * int((inside & wanted).sum()) / total if total else 0.0


def fails_elsewhere(
    found: FailureSlice, fresh: SampleSet, criterion: FailureCriterion, *, largest_p: float = 0.05
) -> bool:
    """Return whether members fail more often than the rest of the class on samples that no step has seen."""
    problem = next(
        (
            one
            for one in class_problems(fresh.dataset, fresh.rows, criterion)
            if matches(found, one)
        ),
        None,
    )
    if problem is None:
        return False
    return group_p(found.inside(fresh, problem), problem.failed, problem.groups) <= largest_p


def judge_name(found: FailureSlice, truth: KnownSlice, same_meaning: SameMeaning) -> NameVerdict:
    """Compare the first name's contrast with the right words."""
    if found.name is None:
        return NameVerdict()
    said = words_of(found.name.contrast)
    right = [word for phrase in truth.words for word in words_of(phrase)]
    beside = [word for phrase in truth.same_attribute for word in words_of(phrase)]
    is_exact = any(word in right for word in said)
    is_synonym = is_exact or any(same_meaning(word, other) for word in said for other in right)
    is_same = is_synonym or any(
        word in beside or any(same_meaning(word, other) for other in beside) for word in said
    )
    return NameVerdict(is_exact=is_exact, is_synonym=is_synonym, is_same_attribute=is_same)


def words_of(phrase: str) -> list[str]:
    """Return the words of a phrase in small letters.

    >>> words_of("on a Grassy background")
    ['on', 'a', 'grassy', 'background']
    """
    return re.findall(r"[a-z]+", phrase.lower())


Item = TypeVar("Item")


class TruthScore(Record):
    """What a method did with one known slice.

    Args:
        precision_at_10: of its best slice, on confirmation samples.
        precision_at_25: the same with 25.
        is_found: whether a candidate agrees with it.
        is_confirmed: whether a confirmed slice agrees with it.
        said: the words of the best confirmed slice.
        name: how right they are; None if there is no such slice or it has no name.
    """

    precision_at_10: float
    precision_at_25: float
    is_found: bool
    is_confirmed: bool
    said: str = ""
    name: NameVerdict | None = None


class MethodScore(Record):
    """One method on one problem.

    Args:
        method: registered name.
        source: where the samples come from.
        kind: what was planted.
        number: number of the world.
        truths: one entry a known slice.
        n_considered: candidates looked at.
        n_tested: candidates tested on confirmation samples.
        n_confirmed: slices confirmed.
        n_false: confirmed slices that are none, None where nobody can know.
        seconds: of discovery, naming and proof.
        megabytes: largest memory that discovery asked for, None when not measured.
        note: why the method could not be used.
    """

    method: str
    source: str
    kind: str
    number: int
    truths: tuple[TruthScore, ...] = ()
    n_considered: int = 0
    n_tested: int = 0
    n_confirmed: int = 0
    n_false: int | None = 0
    seconds: float = 0.0
    megabytes: float | None = None
    note: str = ""

    @property
    def false_share(self) -> float | None:
        """Return the share of false findings among the confirmed ones, 0 without any, None where nobody can know."""
        if self.n_false is None:
            return None
        return self.n_false / self.n_confirmed if self.n_confirmed else 0.0


def truth_scores(
    problem: BenchProblem,
    candidates: Sequence[FailureSlice],
    confirmed: Sequence[FailureSlice],
    same_meaning: SameMeaning,
) -> tuple[TruthScore, ...]:
    return tuple(
        _truth_score(truth, problem, candidates, confirmed, same_meaning)
        for truth in problem.truths
    )


def _truth_score(
    truth: KnownSlice,
    problem: BenchProblem,
    candidates: Sequence[FailureSlice],
    confirmed: Sequence[FailureSlice],
    same_meaning: SameMeaning,
) -> TruthScore:
    held_out = problem.confirmation
    agreeing = sorted(
        (
            (agreement(found, truth, held_out), -place, found)
            for place, found in enumerate(confirmed)
        ),
        key=lambda one: one[:2],
    )
    best = agreeing[-1] if agreeing else None
    is_confirmed = best is not None and best[0] >= MIN_AGREEMENT
    named = (
        judge_name(best[2], truth, same_meaning)
        if best is not None and is_confirmed and best[2].name is not None and truth.words
        else None
    )
    return TruthScore(
        precision_at_10=best_precision(candidates, truth, held_out, count=10),
        precision_at_25=best_precision(candidates, truth, held_out, count=25),
        is_found=any(agreement(found, truth, held_out) >= MIN_AGREEMENT for found in candidates),
        is_confirmed=is_confirmed,
        said=best[2].title if best is not None and is_confirmed else "",
        name=named,
    )


def count_false(problem: BenchProblem, confirmed: Sequence[FailureSlice]) -> int | None:
    """Return how many confirmed slices are no slices: of a null world all, else those that fail no more on fresh samples.

    Without fresh samples nobody can know: a classifier of photographs also fails where nothing was planted.
    """
    if not problem.truths:
        return len(confirmed)
    if problem.fresh is None:
        return None
    return sum(not fails_elsewhere(found, problem.fresh, problem.criterion) for found in confirmed)


class TableRow(Record):
    """One method on all worlds of one kind; shares are over known slices, None where there is nothing to take them of."""

    source: str
    kind: str
    method: str
    n_worlds: int
    precision_at_10: float | None = None
    precision_at_25: float | None = None
    found: float | None = None
    confirmed: float | None = None
    name_exact: float | None = None
    name_synonym: float | None = None
    name_same_attribute: float | None = None
    false_share: float | None = None
    worlds_with_false: float | None = None
    n_tested: float = 0.0
    seconds: float = 0.0
    megabytes: float | None = None
    note: str = ""


def table_rows(scores: Sequence[MethodScore]) -> tuple[TableRow, ...]:
    """Return one row for every source, kind and method, in the order of first appearance."""
    keys = dict.fromkeys((score.source, score.kind, score.method) for score in scores)
    return tuple(
        _row([score for score in scores if (score.source, score.kind, score.method) == key])
        for key in keys
    )


def _row(scores: Sequence[MethodScore]) -> TableRow:
    first = scores[0]
    truths = [truth for score in scores for truth in score.truths]
    names = [truth.name for truth in truths if truth.name is not None]
    memory = [score.megabytes for score in scores if score.megabytes is not None]
    return TableRow(
        source=first.source,
        kind=first.kind,
        method=first.method,
        n_worlds=len(scores),
        precision_at_10=_mean(truths, lambda one: one.precision_at_10),
        precision_at_25=_mean(truths, lambda one: one.precision_at_25),
        found=_mean(truths, lambda one: one.is_found),
        confirmed=_mean(truths, lambda one: one.is_confirmed),
        name_exact=_mean(names, lambda one: one.is_exact),
        name_synonym=_mean(names, lambda one: one.is_synonym),
        name_same_attribute=_mean(names, lambda one: one.is_same_attribute),
        false_share=_mean(
            [share for share in (score.false_share for score in scores) if share is not None], float
        ),
        worlds_with_false=_mean(
            [count for count in (score.n_false for score in scores) if count is not None], bool
        ),
        n_tested=float(np.mean([score.n_tested for score in scores])),
        seconds=float(np.mean([score.seconds for score in scores])),
        megabytes=max(memory) if memory else None,
        note=next((score.note for score in scores if score.note), ""),
    )


def _mean(items: Sequence[Item], measure: Callable[[Item], float]) -> float | None:
    return float(np.mean([measure(item) for item in items])) if items else None


def group_rows(rows: Sequence[TableRow]) -> Mapping[tuple[str, str], tuple[TableRow, ...]]:
    keys = dict.fromkeys((row.source, row.kind) for row in rows)
    return {key: tuple(row for row in rows if (row.source, row.kind) == key) for key in keys}
