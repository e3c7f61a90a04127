import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.failures import FailureCriterion, class_problems
from weakspot.core.rules import ColumnRule
from weakspot.core.samples import SampleSet
from weakspot.verify.blind import MAX_ODDS, UNMOVED, weighed_by_training

N = 100
RULES = [ColumnRule(column=name, values=("yes",)) for name in ("early", "odd")]
EVEN = np.array([0.5, 0.5])


def _weights(n_failed, *, failure_rate, groups=None):
    """Return the weights of the first 20 training samples of 100, and of every other one; the first ones failed."""
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
