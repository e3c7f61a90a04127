import numpy as np
import pytest

from weakspot.core.dataset import Split, dataset_from_columns
from weakspot.core.errors import NotEnoughDataError
from weakspot.core.failures import Side
from weakspot.core.heads import RepairMaterial
from weakspot.core.samples import SampleSet
from weakspot.repair.strategies.reweighting import SliceBalancedRepairer
from weakspot.testing.planted import plant, spurious


def _select(slices, training, **parameters):
    return SliceBalancedRepairer(**parameters).select(slices, RepairMaterial(training=training))


def test_select__slice_and_rest_of_class_weigh_the_same(training, make_slice):
    chosen = _select([make_slice()], training)
    assert chosen.rows.tolist() == list(range(12))
    # Eight apples: two green share half of the class (2 each), six others the other half (2/3 each); pears stay at 1.
    assert chosen.weights == pytest.approx([2.0] * 2 + [2 / 3] * 6 + [1.0] * 4)
    assert chosen.weights.mean() == pytest.approx(1.0)
    assert chosen.group_objectives == ()
    assert (
        chosen.note
        == "Slices weigh as much as the rest of their class: 2 of 12 samples are in slices."
    )
    assert not SliceBalancedRepairer().is_baseline


def test_select__all_classes_with_slices_and_balanced_are_the_weights_of_the_paper(make_slice):
    """With C classes and parts D, the paper gives 1 / (C |D|); here it is the same times the number of samples and one half."""
    dataset = dataset_from_columns(
        class_names=["apple", "pear"],
        labels=[0] * 6 + [1] * 4,
        metadata={"green": [True] + [False] * 5 + [True] + [False] * 3},
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(10))
    slices = [make_slice(), make_slice(class_name="pear")]
    paper = np.array([1 / (2 * 1)] + [1 / (2 * 5)] * 5 + [1 / (2 * 1)] + [1 / (2 * 3)] * 3)
    assert _select(slices, samples, is_class_balanced=True).weights == pytest.approx(paper * 10 / 2)
    kept = _select(slices, samples).weights
    assert kept[:6].sum() == pytest.approx(6.0)
    assert kept[0] / kept[1] == pytest.approx(paper[0] / paper[1])


def test_select__balanced_classes_without_slices_count_as_much_as_those_with(training, make_slice):
    chosen = _select([make_slice()], training, is_class_balanced=True)
    # Twelve samples, six for each class: apples in halves of three.
    assert chosen.weights == pytest.approx([1.5] * 2 + [0.5] * 6 + [1.5] * 4)
    assert "classes weigh the same" in chosen.note


def test_select__several_slices_of_a_class_share_it_equally(training, make_slice):
    weights = _select([make_slice(), make_slice("wet")], training).weights
    # Three parts of eight apples: 8/3 for each of green (2), wet (2) and the rest (4).
    assert weights == pytest.approx([4 / 3] * 2 + [2 / 3] * 4 + [4 / 3] * 2 + [1.0] * 4)


def test_select__a_slice_without_training_members_is_named_and_the_others_go_on(
    training, make_slice
):
    chosen = _select([make_slice(class_name="pear"), make_slice()], training)
    assert chosen.weights == pytest.approx([2.0] * 2 + [2 / 3] * 6 + [1.0] * 4)
    assert (
        "No training sample is a member of “pear: unnamed (hand)”; add samples from a pool or generated ones."
        in chosen.note
    )


def test_select__no_training_member_at_all_is_refused(training, make_slice):
    with pytest.raises(NotEnoughDataError, match="pear: unnamed"):
        _select([make_slice(class_name="pear")], training)
    with pytest.raises(NotEnoughDataError, match="any slice"):
        _select([make_slice()], training.only(np.arange(8, 12)))
    assert _select([], training).weights == pytest.approx([1.0] * 12)


def test_select__multi_label_sides(make_slice):
    dataset = dataset_from_columns(
        class_names=["apple"],
        label_lists=[[0]] * 4 + [[]] * 4,
        metadata={"green": [True, False, False, False] * 2},
    )
    samples = SampleSet(dataset=dataset, rows=np.arange(8))
    weights = _select([make_slice(side=Side.ABSENT)], samples).weights
    assert weights == pytest.approx([1.0] * 4 + [2.0, 2 / 3, 2 / 3, 2 / 3])


def test_select__raises_the_minority_of_a_planted_correlation(make_slice):
    """Logistic regression with these weights, by another solver, tells more of the minority and no less overall."""
    from sklearn.linear_model import LogisticRegression

    world = plant(spurious(0.95), 4000, seed=1)
    slices = [
        make_slice(
            class_name=true.class_name,
            rule={"kind": "column", "column": true.factor, "values": (true.value,)},
        )
        for true in world.slices
    ]
    chosen = _select(slices, world.samples(Split.TRAIN))
    labels, test = world.dataset.labels, world.dataset.rows_of(Split.TEST)
    is_minority = np.any([true.inside[test] for true in world.slices], axis=0)
    right = []
    for weights in (np.ones(len(chosen.rows)), chosen.weights):
        fitted = LogisticRegression(max_iter=500).fit(
            world.features(chosen.rows), labels[chosen.rows], sample_weight=weights
        )
        right.append(fitted.predict(world.features(test)) == labels[test])
    assert right[1][is_minority].mean() > right[0][is_minority].mean() + 0.1
    assert right[1].mean() > right[0].mean() - 0.01
