import numpy as np
import pytest

from weakspot.core.dataset import Task, dataset_from_columns
from weakspot.core.evidence import Interval
from weakspot.core.heads import Head
from weakspot.core.repairs import GroupChange, GroupKind, RepairArm, RepairOutcome, RepairPlan
from weakspot.core.rules import IdRule
from weakspot.core.samples import SampleSet
from weakspot.core.slices import DataUse, FailureSlice

USE = DataUse(name="test", n_samples=10, digest="0" * 32)
HALF = Interval(low=0.2, high=0.8)


def _change(**other):
    given = {"n_samples": 10, "right_before": 4, "right_after": 7, "gained": 4, "lost": 1}
    return GroupChange(
        group="all", kind=GroupKind.OVERALL, interval_before=HALF, interval_after=HALF, p_value=0.4, **{**given, **other}
    )


def test_head__softmax_by_hand():
    head = Head(weights=np.array([[1.0, 0.0], [0.0, 2.0]], dtype=np.float32), bias=np.array([0.0, np.log(2)], dtype=np.float32))
    features = np.array([[0.0, 0.0], [np.log(2), 0.0]], dtype=np.float32)
    np.testing.assert_allclose(head.logits(features), [[0, np.log(2)], [np.log(2), np.log(2)]], atol=1e-6)
    np.testing.assert_allclose(head.probabilities(features), [[1 / 3, 2 / 3], [0.5, 0.5]], atol=1e-6)


def test_head__one_sigmoid_a_label():
    head = Head(weights=np.eye(2, dtype=np.float32), bias=np.zeros(2, dtype=np.float32), task=Task.MULTI_LABEL)
    found = head.probabilities(np.array([[np.log(3), -np.log(4)]], dtype=np.float32))
    np.testing.assert_allclose(found, [[0.75, 0.2]], atol=1e-6)


@pytest.mark.parametrize("task", list(Task))
def test_head__huge_logits_stay_finite(task):
    head = Head(weights=np.array([[1e6], [-1e6]], dtype=np.float32), bias=np.zeros(2, dtype=np.float32), task=task)
    np.testing.assert_allclose(head.probabilities(np.array([[1.0]], dtype=np.float32)), [[1.0, 0.0]], atol=1e-6)


def test_group_change__accuracies():
    change = _change()
    assert (change.accuracy_before, change.accuracy_after) == (0.4, 0.7)
    assert change.change == pytest.approx(0.3)
    assert np.isnan(_change(n_samples=0, right_before=0, right_after=0).change)


def test_repair_outcome__the_repair_among_its_baselines():
    plan = RepairPlan(slice_ids=("abc",), repairer="slice-balanced", parameters={"x": 1}, trained_on=USE)
    arms = [
        RepairArm(arm=name, is_baseline=name != "slice-balanced", note="n", n_trained=3, changes=(_change(),))
        for name in ("random", "slice-balanced")
    ]
    outcome = RepairOutcome(plan=plan, measured_on=USE, arms=tuple(arms))
    assert outcome.repaired.arm == "slice-balanced"
    assert RepairOutcome.model_validate_json(outcome.model_dump_json()) == outcome


@pytest.fixture
def cats_and_dogs():
    # Cats are rows 0 to 3, dogs 4 and 5; rows 6 to 8 are cats in the pool.
    data = dataset_from_columns(
        class_names=["cat", "dog"], labels=[0, 0, 0, 0, 1, 1, 0, 0, 0], sample_ids=[f"s{number}" for number in range(9)]
    )
    return SampleSet(dataset=data, rows=np.arange(6), name="training"), SampleSet(dataset=data, rows=np.arange(6, 9), name="pool")


def _by_id(found, samples, rows):
    return found.rule.scores(samples, rows)


def test_balanced_selection__members_weigh_as_much_as_the_rest(cats_and_dogs):
    training, _ = cats_and_dogs
    found = FailureSlice(class_name="cat", rule=IdRule(sample_ids=("s3",)), method="m", found_on=USE)
    chosen = balanced_selection([found], training=training, pool=None, budget=0, rank=_by_id)
    # Four cats: the member gets half of their weight, 4 / 2 = 2, the other three share the rest, 2 / 3 each. Dogs keep one.
    assert chosen.rows.tolist() == [0, 1, 2, 3, 4, 5]
    np.testing.assert_allclose(chosen.weights, [2 / 3, 2 / 3, 2 / 3, 2, 1, 1])
    assert chosen.weights.mean() == pytest.approx(1.0)


def test_balanced_selection__pool_within_the_budget(cats_and_dogs):
    training, pool = cats_and_dogs
    found = FailureSlice(class_name="cat", rule=IdRule(sample_ids=("s3", "s7", "s8")), method="m", found_on=USE)
    for budget, added in ((0, []), (1, [7]), (5, [7, 8])):
        chosen = balanced_selection([found], training=training, pool=pool, budget=budget, rank=_by_id)
        assert chosen.rows.tolist() == [0, 1, 2, 3, 4, 5, *added]
        assert chosen.weights.mean() == pytest.approx(1.0)
        inside = np.isin(chosen.rows, [3, *added])
        cats = chosen.rows != 4
        cats &= chosen.rows != 5
        assert chosen.weights[inside].sum() == pytest.approx(chosen.weights[cats & ~inside].sum())
    assert "2 of them added from the pool" in chosen.note


def test_balanced_selection__nothing_to_repair(cats_and_dogs):
    training, _ = cats_and_dogs
    chosen = balanced_selection([], training=training, pool=None, budget=0, rank=_by_id)
    np.testing.assert_array_equal(chosen.weights, np.ones(6))


def test_balanced_selection__no_members_and_all_members(cats_and_dogs):
    training, _ = cats_and_dogs
    for ids in ((), ("s0", "s1", "s2", "s3")):
        found = FailureSlice(class_name="cat", rule=IdRule(sample_ids=ids), method="m", found_on=USE)
        chosen = balanced_selection([found], training=training, pool=None, budget=0, rank=_by_id)
        np.testing.assert_allclose(chosen.weights, np.ones(6))
