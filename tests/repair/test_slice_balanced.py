import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.failures import Side
from weakspot.core.samples import SampleSet
from weakspot.repair.slice_balanced import SliceBalancedRepairer

REPAIRER = SliceBalancedRepairer()


def _select(slices, training, pool=None, budget=0):
    return REPAIRER.select(slices, training=training, pool=pool, budget=budget, seed=0)


def test_select__slice_and_rest_of_class_weigh_the_same(training, make_slice):
    chosen = _select([make_slice()], training)
    assert chosen.rows.tolist() == list(range(12))
    # Eight apples: two green share half of the class (2 each), six others the other half (2/3 each); pears stay at 1.
    assert chosen.weights == pytest.approx([2.0] * 2 + [2 / 3] * 6 + [1.0] * 4)
    assert chosen.weights.mean() == pytest.approx(1.0)
    assert "2 of 12 samples chosen" in chosen.note
    assert not REPAIRER.is_baseline


def test_select__ratio_of_weights_is_that_of_the_paper(training, make_slice):
    """The weights of the two parts are to each other as 1/|D>| to 1/|D<=|."""
    weights = _select([make_slice()], training).weights
    assert weights[0] / weights[7] == pytest.approx((1 / 2) / (1 / 6))


def test_select__several_slices_of_a_class_share_it_equally(training, make_slice):
    weights = _select([make_slice(), make_slice("wet")], training).weights
    # Three parts of eight apples: 8/3 for each of green (2), wet (2) and the rest (4).
    assert weights == pytest.approx([4 / 3] * 2 + [2 / 3] * 4 + [4 / 3] * 2 + [1.0] * 4)


def test_select__slices_of_two_classes_do_not_mix(training, make_slice):
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=[0] * 4 + [1] * 4,
        metadata={"green": [True, False, False, False] * 2},
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(8))
    weights = _select([make_slice(), make_slice(class_name="pear")], samples).weights
    assert weights == pytest.approx([2.0, 2 / 3, 2 / 3, 2 / 3] * 2)


def test_select__a_slice_without_training_members_changes_nothing(training, make_slice):
    nobody = make_slice(class_name="pear")
    assert _select([nobody], training).weights == pytest.approx([1.0] * 12)
    assert _select([], training).weights == pytest.approx([1.0] * 12)


def test_select__unlabelled_rows_are_not_trained_on(training, make_slice):
    dataset = dataset_from_columns(
        class_names=["apple", "pear"], labels=[0, -1, 0, 1], metadata={"green": [True, True, False, False]}
    )
    chosen = _select([make_slice()], SampleSet(dataset=dataset, rows=np.arange(4)))
    assert chosen.rows.tolist() == [0, 2, 3]


def test_select__adds_pool_members_within_the_budget(make_slice):
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=[0] * 6 + [1] * 2 + [0] * 6 + [1] * 2,
        splits=["train"] * 8 + ["pool"] * 8,
        metadata={"green": [True] + [False] * 7 + [True, False, True, True, False, False, True, True]},
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(8))
    pool = samples.only(np.arange(8, 16))
    chosen = _select([make_slice()], samples, pool=pool, budget=2)
    assert chosen.rows.tolist() == [*range(8), 8, 10]
    # Eight apples now, three of them green.
    assert chosen.weights[[0, 8, 9]] == pytest.approx([8 / 6] * 3)
    assert "2 of them added from the pool" in chosen.note
    everything = _select([make_slice()], samples, pool=pool, budget=99)
    assert everything.rows.tolist() == [*range(8), 8, 10, 11]
    assert _select([make_slice()], samples, pool=pool, budget=0).rows.tolist() == list(range(8))


def test_select__multi_label_sides(make_slice):
    dataset = dataset_from_columns(
        class_names=["apple"], label_lists=[[0]] * 4 + [[]] * 4, metadata={"green": [True, False, False, False] * 2}
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(8))
    weights = _select([make_slice(side=Side.ABSENT)], samples).weights
    assert weights == pytest.approx([1.0] * 4 + [2.0, 2 / 3, 2 / 3, 2 / 3])
