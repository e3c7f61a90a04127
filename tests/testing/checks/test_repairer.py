from dataclasses import replace

import numpy as np

from weakspot.core.training_sets import TrainingSelection
from weakspot.repair.slice_balanced import SliceBalancedRepairer


class Altered(SliceBalancedRepairer):
    def select(self, slices, *, training, pool, budget, seed):
        made = super().select(slices, training=training, pool=pool, budget=budget, seed=seed)
        return self.altered(made, training)


class TrainingOnTest(Altered):
    def altered(self, made, training):
        everything = np.arange(len(training.dataset))
        return TrainingSelection(rows=everything, weights=np.ones(len(everything)), note="all")


class Heavy(Altered):
    def altered(self, made, training):
        return replace(made, weights=made.weights * 2)


class Spendthrift(SliceBalancedRepairer):
    def select(self, slices, *, training, pool, budget, seed):
        return super().select(slices, training=training, pool=pool, budget=1000, seed=seed)


class Speechless(Altered):
    def altered(self, made, training):
        return replace(made, note=" ")


def test_check_repairer__broken_in_one_way(rejected):
    assert "outside training" in rejected("repairers", "rows_come_from_training_or_pool", TrainingOnTest)
    assert "mean weight is 2.0" in rejected("repairers", "weights_have_mean_one", Heavy)
    assert "with a budget of 0" in rejected("repairers", "budget_is_kept", Spendthrift)
    assert "note is empty" in rejected("repairers", "says_what_was_done", Speechless)
