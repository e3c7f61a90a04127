import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.rules import ColumnRule
from weakspot.core.samples import SampleSet
from weakspot.verify.training_odds import LARGEST_ODDS, UNMOVED, training_odds

N = 100
RULES = [ColumnRule(column=name, values=("yes",)) for name in ("early", "odd")]


def _odds(n_failed, *, failure_rate, groups=None):
    """Return the odds of the first 20 training samples of 100, and of every other one; the first ones failed."""
    number = np.arange(N)
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=[0] * N,
        splits=["train"] * N,
        sample_ids=[f"{place:03d}" for place in number],
        metadata={
            "early": np.where(number < 20, "yes", "no").tolist(),
            "odd": np.where(number % 2 == 1, "yes", "no").tolist(),
        },
        predictions=(number < n_failed).astype(np.int64),
        groups=groups,
    )
    samples = SampleSet(dataset=dataset, rows=number)
    (problem,) = class_problems(dataset, number, FailureCriterion())
    return training_odds(RULES, problem, samples, failure_rate)


def test_training_odds__rules_whose_training_samples_fail_are_worth_more():
    early, odd = _odds(10, failure_rate=0.1)
    assert early > 3.0
    assert UNMOVED <= odd < 1.0


def test_training_odds__are_bounded():
    assert _odds(20, failure_rate=0.2)[0] == pytest.approx(
        UNMOVED + (1 - UNMOVED) * LARGEST_ODDS
    )


@pytest.mark.parametrize("n_failed", [0, N])
def test_training_odds__nothing_to_compare__all_alike(n_failed):
    np.testing.assert_array_equal(_odds(n_failed, failure_rate=0.1), [1.0, 1.0])


def test_training_odds__a_classifier_that_fails_less_in_training__says_less():
    fresh, learnt = (_odds(8, failure_rate=rate)[0] for rate in (0.08, 0.4))
    assert 1.0 < learnt < 0.5 * fresh


def test_training_odds__images_of_one_object_say_less():
    single = _odds(8, failure_rate=0.08)[0]
    objects = [f"object {number // 4}" for number in range(N)]
    assert 1.0 < _odds(8, failure_rate=0.08, groups=objects)[0] < 0.5 * single
