"""Rules that are made without predictions: who lists them, and how all of them are tested on all samples.

Every rule is counted, and the best of each class is believed only as far as the best of chance is worse.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray, IntArray, even_part
from weakspot.core.failures import ClassProblem
from weakspot.core.rules import Rule
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.core.statistics import log_ratios, overlap
from weakspot.discover.family_tests import BlindCandidate, family_test

UNMOVED = 0.5
"""Part of all weight that training does not move: where its failures mislead, every rule keeps half of what it had."""
MAX_ODDS = 20.0
MAX_SAMPLES = 5_000


def weighed_by_training(
    weights: DoubleArray,
    rules: Sequence[Rule],
    training: ClassProblem,
    samples: SampleSet,
    *,
    failure_rate: float,
) -> DoubleArray:
    """Return weights [m], together 1, of which half go to rules whose training members fail more often than others.

    A classifier that fails less in training than elsewhere has learnt these samples by heart, and which of them it still fails on
    says little: odds are taken to the power of the quotient of both rates.

    Args:
        weights: of the rules without training, together 1 [m].
        rules: made without predictions.
        training: samples of their class that share no group with those that will be tested.
        samples: all samples.
        failure_rate: of the class among those that will be tested.
    """
    some = training.only(even_part(np.arange(len(training.rows)), MAX_SAMPLES))
    if not some.n_failed or not some.n_right:
        return weights
    trust = min(1.0, float(some.failed.mean()) / failure_rate) * some.worth
    members = [rule.members(samples, some.rows) for rule in rules]
    odds = np.exp(np.minimum(trust * _log_odds(members, some.failed), np.log(MAX_ODDS)))
    moved = weights * odds
    return np.asarray(UNMOVED * weights + (1.0 - UNMOVED) * moved / moved.sum())


def _log_odds(members: Sequence[BoolArray], failed: BoolArray) -> DoubleArray:
    sizes: IntArray = np.array([int(inside.sum()) for inside in members])
    failures = np.array([int((inside & failed).sum()) for inside in members])
    ratios = log_ratios(sizes, len(failed), int(failed.sum()))
    return np.asarray(ratios[np.arange(len(sizes)), failures])


BEST_OF_CLASS = 3
LATER_WEIGHT = 0.1
DISTINCT_AT = 0.5
MIN_SIDE = 5
MIN_FAILURES = 2


@dataclass(frozen=True, kw_only=True)
class BlindTest:
    """One of the rules of a class that stand out most.

    Args:
        found: the slice.
        own_p: p-value of this rule alone.
        p_value: corrected for all rules of its class, and for the rules of other classes that are not told.
        weight: of its test among those of all classes, which the number and rate of failures of a class decide.
    """

    found: FailureSlice
    own_p: float
    p_value: float
    weight: float


def judge_blind(
    classes: Iterable[tuple[ClassProblem, Sequence[BlindCandidate]]],
    samples: SampleSet,
    *,
    largest_p: float,
    most: int,
    training: Iterable[ClassProblem] = (),
) -> tuple[BlindTest, ...]:
    """Return the rules of all classes that are worth telling, with p-values that allow for all that were tried.

    Of each class at most three rules with different members count as tests, the best one far more than the others. A class weighs by
    the square of its number of failures and by its failure rate, which dealing them out anew within the class leaves as they are.
    Failures of other samples, those of training, may weigh the rules of their class.

    Args:
        classes: samples with failures, and rules that were made without them.
        samples: whose members are asked for.
        largest_p: rules with a larger p-value of their own are not told.
        most: at most so many are told.
        training: classes among samples that share no group with any that is tested.
    """
    tests: list[BlindTest] = []
    others = {(problem.class_name, problem.side): problem for problem in training}
    for problem, candidates in classes:
        tests += _best(problem, candidates, samples, others.get((problem.class_name, problem.side)))
    told = sorted(
        (test for test in tests if test.own_p <= largest_p),
        key=lambda test: (test.p_value / test.weight, test.found.slice_id),
    )[:most]
    # What is not told still counts: its weight is not given to the others.
    factor = _weight(tests) / _weight(told) if told else 1.0
    return tuple(
        BlindTest(
            found=test.found,
            own_p=test.own_p,
            p_value=min(1.0, test.p_value * factor),
            weight=test.weight,
        )
        for test in told
    )


def _weight(tests: Sequence[BlindTest]) -> float:
    return sum(test.weight for test in tests)


def _best(
    problem: ClassProblem,
    candidates: Sequence[BlindCandidate],
    samples: SampleSet,
    training: ClassProblem | None,
) -> list[BlindTest]:
    if min(problem.n_failed, problem.n_right) < MIN_FAILURES or not candidates:
        return []
    known: BoolArray = np.ones(len(problem.rows), dtype=np.bool_)
    for rule in {type(found.rule): found.rule for found, _ in candidates}.values():
        known &= rule.is_known(samples, problem.rows)
    rows = problem.rows[known]
    insides = [found.rule.members(samples, rows) for found, _ in candidates]
    usable = [
        place
        for place, inside in enumerate(insides)
        if MIN_SIDE <= inside.sum() <= len(rows) - MIN_SIDE
    ]
    if not usable:
        return []
    chosen = [candidates[place] for place in usable]
    members = [insides[place] for place in usable]
    groups = None if problem.groups is None else problem.groups[known]
    weights = _weights(chosen)
    if training is not None:
        rules = [found.rule for found, _ in chosen]
        weights = weighed_by_training(
            weights, rules, training, samples, failure_rate=float(problem.failed.mean())
        )
    own, among_all = family_test(problem.failed[known], groups, members, weights)
    kept: list[int] = []
    for place in np.lexsort((own, among_all)):
        if all(overlap(members[place], members[other]) < DISTINCT_AT for other in kept):
            kept.append(int(place))
        if len(kept) == BEST_OF_CLASS:
            break
    return [
        BlindTest(
            found=chosen[place][0],
            own_p=float(own[place]),
            p_value=float(among_all[place]),
            weight=_class_weight(problem) * (LATER_WEIGHT if rank else 1.0),
        )
        for rank, place in enumerate(kept)
    ]


def _class_weight(problem: ClassProblem) -> float:
    return float(problem.n_failed) ** 3 / len(problem.rows)


def _weights(candidates: Sequence[BlindCandidate]) -> DoubleArray:
    """Return weights, together 1, by which every method has the same part, however many rules it lists."""
    totals: dict[str, float] = defaultdict(float)
    for found, weight in candidates:
        totals[found.method] += weight
    shares = [weight / totals[found.method] for found, weight in candidates]
    return np.array(shares) / len(totals)
