import numpy as np
import pytest

from weakspot.core.samples import SampleSet
from weakspot.repair.random_choice import RandomRepairer
from weakspot.repair.slice_balanced import SliceBalancedRepairer


def _select(slices, training, seed=0, pool=None, budget=0):
    return RandomRepairer().select(slices, training=training, pool=pool, budget=budget, seed=seed)


def test_select__same_weights_on_other_samples_of_the_class(training, make_slice):
    chosen = _select([make_slice()], training)
    balanced = SliceBalancedRepairer().select([make_slice()], training=training, pool=None, budget=0, seed=0)
    assert sorted(chosen.weights) == pytest.approx(sorted(balanced.weights))
    assert chosen.weights[8:] == pytest.approx([1.0] * 4)
    assert RandomRepairer().is_baseline


def test_select__seed_decides(training, make_slice):
    heavy = {tuple(np.flatnonzero(_select([make_slice()], training, seed=seed).weights > 1.5)) for seed in range(12)}
    assert len(heavy) > 3
    assert _select([make_slice()], training, seed=4).weights.tolist() == _select([make_slice()], training, seed=4).weights.tolist()


def test_select__takes_as_many_from_the_pool(training, make_slice):
    first = training.only(np.array([0, 2, 3, 8, 9]))
    pool = SampleSet(dataset=training.dataset, rows=np.array([1, 4, 5, 6, 7, 10, 11]))
    chosen = _select([make_slice()], first, pool=pool, budget=5)
    balanced = SliceBalancedRepairer().select([make_slice()], training=first, pool=pool, budget=5, seed=0)
    assert len(chosen.rows) == len(balanced.rows) == 6
    assert balanced.rows.tolist() == [0, 1, 2, 3, 8, 9]
    assert set(chosen.rows) - set(first.rows) <= {1, 4, 5, 6, 7}
    assert sorted(chosen.weights) == pytest.approx(sorted(balanced.weights))
