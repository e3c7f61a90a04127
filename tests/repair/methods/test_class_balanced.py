import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.heads import RepairMaterial
from weakspot.core.samples import SampleSet
from weakspot.repair.strategies.reweighting import ClassBalancedRepairer


def test_select__every_class_weighs_the_same(training, make_slice):
    chosen = ClassBalancedRepairer().select([make_slice()], RepairMaterial(training=training))
    # Twelve samples, six for each class.
    assert chosen.weights == pytest.approx([0.75] * 8 + [1.5] * 4)
    assert chosen.note == "Every class weighs the same: 2 classes, 12 samples."
    assert not ClassBalancedRepairer().is_baseline


def test_select__a_class_that_is_missing_from_training_is_named(make_slice):
    dataset = dataset_from_columns(class_names=["apple", "pear", "fig"], labels=[0, 0, 2, -1])
    chosen = ClassBalancedRepairer().select(
        [], RepairMaterial(training=SampleSet(dataset=dataset, rows=np.arange(4)))
    )
    assert chosen.rows.tolist() == [0, 1, 2]
    assert chosen.weights == pytest.approx([0.75, 0.75, 1.5])
    assert "No training sample has the label “pear”." in chosen.note


def test_select__multi_label():
    dataset = dataset_from_columns(
        class_names=["apple", "pear"], label_lists=[[0], [0], [0], [1], None]
    )
    chosen = ClassBalancedRepairer().select(
        [], RepairMaterial(training=SampleSet(dataset=dataset, rows=np.arange(5)))
    )
    assert chosen.rows.tolist() == [0, 1, 2, 3]
    assert chosen.weights == pytest.approx([2 / 3] * 3 + [2.0])
