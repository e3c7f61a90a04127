from dataclasses import replace

import numpy as np
import pytest

from weakspot.core.errors import NotEnoughDataError
from weakspot.core.heads import RepairMaterial
from weakspot.repair.strategies.reweighting import JustTrainTwiceRepairer


def test_select__what_the_classifier_gets_wrong_counts_more__slices_play_no_part(
    training, make_slice
):
    """Confidence in the truth falls with the row number, so the last four of twelve are wrong."""
    repairer = JustTrainTwiceRepairer(factor=4.0)
    chosen = repairer.select([make_slice()], RepairMaterial(training=training))
    assert chosen.weights / chosen.weights[0] == pytest.approx([1.0] * 8 + [4.0] * 4)
    assert chosen.weights.mean() == pytest.approx(1.0)
    assert chosen.note.endswith("count 4 times: 4 of 12 samples.")
    again = repairer.select([], RepairMaterial(training=training))
    assert np.array_equal(again.weights, chosen.weights)


def test_select__no_predictions_or_none_wrong__says_so(training):
    blind = replace(training, dataset=replace(training.dataset, probabilities=None))
    with pytest.raises(NotEnoughDataError, match="not known"):
        JustTrainTwiceRepairer().select([], RepairMaterial(training=blind))
    right = training.only(training.rows[:4])
    with pytest.raises(NotEnoughDataError, match="right on every training sample"):
        JustTrainTwiceRepairer().select([], RepairMaterial(training=right))
