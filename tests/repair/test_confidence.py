import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.errors import DataError
from weakspot.core.failures import Side
from weakspot.core.samples import SampleSet
from weakspot.repair.confidence import ConfidenceRepairer


def _select(slices, training, pool=None, budget=0):
    return ConfidenceRepairer().select(slices, training=training, pool=pool, budget=budget, seed=0)


def test_select__weighs_the_least_confident_of_the_class(training, make_slice):
    weights = _select([make_slice()], training).weights
    assert weights == pytest.approx([2 / 3] * 6 + [2.0] * 2 + [1.0] * 4)
    assert ConfidenceRepairer().is_baseline


def test_select__pool_rows_least_confident_first(training, make_slice):
    first = training.only(np.array([0, 2, 8]))
    pool = training.only(np.array([1, 3, 4, 7]))
    assert _select([make_slice()], first, pool=pool, budget=3).rows.tolist() == [0, 2, 7, 8]


def test_select__samples_that_lack_a_label(make_slice):
    dataset = dataset_from_columns(
        class_names=["apple"],
        label_lists=[[], [], []],
        metadata={"green": [True, False, False]},
        probabilities=np.array([[0.1], [0.8], [0.3]], dtype=np.float32),
    )
    weights = _select([make_slice(side=Side.ABSENT)], SampleSet(dataset=dataset, rows=np.arange(3))).weights
    assert int(np.argmax(weights)) == 1


def test_select__needs_probabilities(make_slice):
    dataset = dataset_from_columns(class_names=["apple", "pear"], labels=[0, 0], metadata={"green": [True, False]})
    with pytest.raises(DataError, match="probabilities"):
        _select([make_slice()], SampleSet(dataset=dataset, rows=np.arange(2)))
