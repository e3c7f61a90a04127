from dataclasses import dataclass, replace

import numpy as np
import pytest

from weakspot.core.errors import NotEnoughDataError
from weakspot.core.heads import TrainingSelection
from weakspot.repair.strategies.groups import WorstSliceRepairer
from weakspot.repair.strategies.pool import RandomRepairer
from weakspot.repair.strategies.reweighting import PlainRepairer, SliceBalancedRepairer
from weakspot.testing.checks import checks_for


def _all(rows, note="all"):
    return TrainingSelection(rows=rows, weights=np.ones(len(rows)), note=note)


class Altered(SliceBalancedRepairer):
    def select(self, slices, material):
        return self.altered(super().select(slices, material), material)


class TrainingOnTest(Altered):
    def altered(self, made, material):
        return _all(np.arange(len(material.training.dataset)))


class Twice(Altered):
    def altered(self, made, material):
        return _all(np.concatenate([made.rows, made.rows[:1]]))


class Unlabelled(Altered):
    def altered(self, made, material):
        return _all(material.training.rows)


class Heavy(Altered):
    def altered(self, made, material):
        return replace(made, weights=made.weights * 2)


class Speechless(Altered):
    def altered(self, made, material):
        return replace(made, note=" ")


class Forgetful(Altered):
    def altered(self, made, material):
        return replace(made, note=f"done {np.random.random()}")  # noqa: NPY002


class ByRow(Altered):
    def altered(self, made, material):
        weights = np.ones(len(made.rows))
        weights[0] += 1.0
        return replace(made, weights=weights * len(weights) / weights.sum())


class Contending(WorstSliceRepairer):
    def select(self, slices, material):
        made = super().select(slices, material)
        return replace(made, group_objectives=self.group_objectives(made))


class Overlapping(Contending):
    def group_objectives(self, made):
        return ((np.array([0, 1]), np.array([1, 2])),)


class OutOfRange(Contending):
    def group_objectives(self, made):
        return ((np.array([0, 1]), np.array([2, 10_000])),)


class Lonely(Contending):
    def group_objectives(self, made):
        return ((np.array([0, 1]),),)


class Empty(Contending):
    def group_objectives(self, made):
        return ((np.array([0, 1]), np.zeros(0, dtype=np.int64)),)


class Spendthrift(SliceBalancedRepairer):
    def select(self, slices, material):
        extra = np.zeros(0, dtype=np.int64) if material.pool is None else material.pool.rows[:7]
        return _all(np.concatenate([material.labelled, extra]))


class Miser(PlainRepairer):
    def select(self, slices, material):
        if material.budget == 0:
            raise NotEnoughDataError("There is no budget.")
        return super().select(slices, material)


class Insisting(PlainRepairer):
    def select(self, slices, material):
        return _all(np.concatenate([material.labelled, material.pool.rows[:1]]))


class LastClass(PlainRepairer):
    """Looks up the probability of the true class of pool samples, and reads -1 as the last one."""

    def select(self, slices, material):
        if material.pool is None or material.budget == 0:
            raise NotEnoughDataError("There is no pool.")
        dataset, rows = material.training.dataset, material.pool.rows
        least = rows[
            np.argsort(dataset.probabilities[rows, dataset.labels[rows]], kind="stable")[
                : material.budget
            ]
        ]
        return _all(np.concatenate([material.labelled, least]))


class Peeking(PlainRepairer):
    def select(self, slices, material):
        labels = material.training.dataset.labels
        return replace(super().select(slices, material), note=f"{int(labels.sum())}")


class Busy(SliceBalancedRepairer):
    def select(self, slices, material):
        if slices:
            return super().select(slices, material)
        weights = np.ones(len(material.labelled))
        weights[0], weights[1] = 0.5, 1.5
        return TrainingSelection(rows=material.labelled, weights=weights, note="busy")


class Dividing(SliceBalancedRepairer):
    def select(self, slices, material):
        for found in slices:
            1 / len(found.members(material.training, found.class_rows(material.training)))
        return super().select(slices, material)


@dataclass(frozen=True, kw_only=True)
class Remembering:
    is_baseline = False

    def select(self, slices, material):
        rows = material.labelled
        Remembering.calls = getattr(Remembering, "calls", 0) + 1
        return _all(rows, note=f"call {Remembering.calls}")


@pytest.mark.parametrize(
    ("check", "broken", "message"),
    [
        ("selections_are_sound", TrainingOnTest, "outside training"),
        ("selections_are_sound", Twice, "selected twice"),
        ("selections_are_sound", Unlabelled, "unlabelled training sample"),
        ("selections_are_sound", Heavy, "mean weight is 2.0"),
        ("selections_are_sound", Overlapping, "in two groups"),
        ("selections_are_sound", OutOfRange, "not selected"),
        ("selections_are_sound", Lonely, "fewer than two groups"),
        ("selections_are_sound", Empty, "is empty"),
        ("budget_is_kept", Spendthrift, "with a budget of 0"),
        ("budget_is_kept", Miser, "takes nothing from the pool"),
        ("says_what_was_done", Speechless, "note is empty"),
        ("no_global_randomness", Forgetful, "random state"),
        ("same_seed_same_result", Remembering, "two selections"),
        ("second_call_forgets_the_first", Remembering, "earlier call"),
        ("order_of_rows_does_not_matter", ByRow, "another order"),
        ("unlabelled_pool_is_understood", LastClass, "last class"),
        ("evaluation_labels_do_not_matter", Peeking, "validation or test"),
        ("no_slices_change_nothing", Busy, "Weights were changed"),
    ],
)
def test_check_repairer__broken_in_one_way(rejected, check, broken, message):
    assert message in rejected("repairers", check, broken)


def test_check_repairer__a_crash_is_no_refusal():
    with pytest.raises(ZeroDivisionError):
        checks_for("repairers")["slices_without_members_are_survived"](Dividing)
    with pytest.raises(AttributeError):
        checks_for("repairers")["material_that_is_not_there_is_not_used"](Insisting)


@pytest.mark.parametrize("check", checks_for("repairers"))
@pytest.mark.parametrize("sound", [WorstSliceRepairer, RandomRepairer])
def test_check_repairer__sound_ones_pass(check, sound):
    checks_for("repairers")[check](sound)
