from dataclasses import replace

import numpy as np
import pytest
from tests import build

from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.rules import ColumnRule
from weakspot.core.slices import DataUse, FailureSlice
from weakspot.verify.blind import MAX_ODDS, UNMOVED, judge_blind, weighed_by_training

CRITERION = FailureCriterion()


def _samples(n_failed=(20, 10)):
    """Return two classes of 100; the failures of each are its first samples."""
    failed = np.concatenate([np.arange(100) < number for number in n_failed])
    labels = np.repeat([0, 1], 100)
    number = np.tile(np.arange(100), 2)
    return build.samples(
        labels.tolist(),
        sample_ids=[f"{place:03d}" for place in range(200)],
        metadata={
            "early": np.where(number < 30, "yes", "no").tolist(),
            "odd": np.where(number % 2 == 1, "yes", "no").tolist(),
        },
        predictions=np.where(failed, 1 - labels, labels),
        rows=np.arange(200),
    )


def _candidate(class_name, column, method="values"):
    rule = ColumnRule(column=column, values=("yes",))
    found = FailureSlice(
        class_name=class_name, rule=rule, method=method, found_on=DataUse.nothing()
    )
    return found, 1.0


def _classes(samples, columns=("early", "odd")):
    return [
        (problem, [_candidate(problem.class_name, column) for column in columns])
        for problem in class_problems(samples.dataset, samples.rows, CRITERION)
    ]


def test_judge_blind__the_best_of_each_class_with_weights_by_failures():
    samples = _samples()
    told = judge_blind(_classes(samples), samples, largest_p=0.05, most=10)
    assert [(test.found.class_name, test.found.rule.column) for test in told] == [
        ("apple", "early"),
        ("pear", "early"),
    ]
    assert [test.weight for test in told] == [80.0, 10.0]
    assert all(test.p_value >= test.own_p for test in told)


def test_judge_blind__what_is_not_told_still_counts():
    samples = _samples()
    every = judge_blind(_classes(samples), samples, largest_p=1.0, most=10)
    best = judge_blind(_classes(samples), samples, largest_p=1.0, most=1)
    assert len(every) == 4
    total = sum(test.weight for test in every)
    assert best[0].found.slice_id == every[0].found.slice_id
    expected = every[0].p_value * total / every[0].weight
    assert best[0].p_value == pytest.approx(expected, rel=1e-9, abs=0.0)


def test_judge_blind__a_class_without_failures_or_a_value_that_few_have__no_test():
    samples = _samples(n_failed=(20, 0))
    told = judge_blind(_classes(samples), samples, largest_p=1.0, most=10)
    assert {test.found.class_name for test in told} == {"apple"}
    assert judge_blind(_classes(samples, ("early",))[:1], samples, largest_p=0.0, most=10) == ()


def test_judge_blind__failures_of_training_samples_weigh_the_rules_of_their_class():
    samples = _samples(n_failed=(12, 12))
    is_tested = np.arange(100) // 2 % 2 == 0
    tested = [(problem.only(np.flatnonzero(is_tested)), one) for problem, one in _classes(samples)]
    training = [
        problem.only(np.flatnonzero(~is_tested))
        for problem in class_problems(samples.dataset, samples.rows, CRITERION)
        if problem.class_name == "apple"
    ]
    odd = replace(training[0], failed=training[0].rows % 2 == 1)
    plain, agrees, differs = (
        {
            (one.found.class_name, one.found.rule.column): one
            for one in judge_blind(tested, samples, largest_p=1.0, most=10, training=given)
        }
        for given in ((), training, [odd])
    )
    odd_ones = [one["apple", "odd"].p_value for one in (differs, plain, agrees)]
    assert odd_ones[0] < odd_ones[1] <= odd_ones[2]
    for changed in (agrees, differs):
        assert changed["pear", "early"] == plain["pear", "early"]
        assert changed["apple", "early"].weight == plain["apple", "early"].weight


N = 100
RULES = [ColumnRule(column=name, values=("yes",)) for name in ("early", "odd")]
EVEN = np.array([0.5, 0.5])


def _weights(n_failed, *, failure_rate, groups=None):
    """Return the weights of the first 20 training samples of 100, and of every other one; the first ones failed."""
    number = np.arange(N)
    samples = build.samples(
        [0] * N,
        splits=["train"] * N,
        sample_ids=[f"{place:03d}" for place in number],
        metadata={
            "early": np.where(number < 20, "yes", "no").tolist(),
            "odd": np.where(number % 2 == 1, "yes", "no").tolist(),
        },
        predictions=number < n_failed,
        groups=groups,
        rows=number,
    )
    (problem,) = class_problems(samples.dataset, number, FailureCriterion())
    return weighed_by_training(EVEN, RULES, problem, samples, failure_rate=failure_rate)


def test_weighed_by_training__rules_whose_training_samples_fail_are_worth_more():
    early, odd = _weights(8, failure_rate=0.08)
    assert early + odd == pytest.approx(1.0)
    assert early > 0.7


@pytest.mark.parametrize("n_failed", [10, 20])
def test_weighed_by_training__half_of_every_weight_stays(n_failed):
    odd = _weights(n_failed, failure_rate=n_failed / N)[1]
    assert UNMOVED * EVEN[1] <= odd < UNMOVED * EVEN[1] + (1 - UNMOVED) / MAX_ODDS


@pytest.mark.parametrize("n_failed", [0, N])
def test_weighed_by_training__nothing_to_compare__as_they_were(n_failed):
    np.testing.assert_array_equal(_weights(n_failed, failure_rate=0.1), EVEN)


def test_weighed_by_training__a_classifier_that_fails_less_in_training__moves_less():
    fresh, learnt = (_weights(3, failure_rate=rate)[0] for rate in (0.03, 0.3))
    assert EVEN[0] < learnt < fresh - 0.1


def test_weighed_by_training__images_of_one_object_move_less():
    objects = [f"object {number // 3}" for number in range(N)]
    single, shared = (_weights(3, failure_rate=0.03, groups=one)[0] for one in (None, objects))
    assert EVEN[0] < shared < single - 0.05
