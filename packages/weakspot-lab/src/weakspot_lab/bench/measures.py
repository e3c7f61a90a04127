"""How well found slices agree with known ones."""

import re
from collections.abc import Callable, Sequence

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.group_tests import group_p
from weakspot.core.record import Record
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice, matches
from weakspot_lab.bench.problem import KnownSlice

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
