import numpy as np

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.heads import RepairMaterial
from weakspot.core.samples import SampleSet
from weakspot.repair.strategies.reweighting import PlainRepairer


def test_select__everything_counts_once(training, make_slice):
    chosen = PlainRepairer().select(
        [make_slice()], RepairMaterial(training=training, pool=training, budget=5)
    )
    assert chosen.rows.tolist() == list(range(12))
    assert chosen.weights.tolist() == [1.0] * 12
    assert chosen.group_objectives == ()
    assert "12 samples" in chosen.note
    assert PlainRepairer().is_baseline


def test_select__unlabelled_rows_are_not_trained_on():
    dataset = dataset_from_columns(class_names=["apple"], labels=[0, -1, 0])
    material = RepairMaterial(training=SampleSet(dataset=dataset, rows=np.arange(3)))
    assert PlainRepairer().select([], material).rows.tolist() == [0, 2]
