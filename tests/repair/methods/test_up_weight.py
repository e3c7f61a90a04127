import numpy as np
import pytest

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.heads import RepairMaterial
from weakspot.core.rules import LinearRule
from weakspot.core.samples import EmbeddingSpace, SampleSet
from weakspot.repair.strategies.reweighting import UpWeightRepairer


def _select(slices, training, **parameters):
    return UpWeightRepairer(**parameters).select(slices, RepairMaterial(training=training))


def test_select__members_count_twice(training, make_slice):
    chosen = _select([make_slice()], training)
    # Ten samples of one and two of two: fourteen in all, mean one.
    assert chosen.weights == pytest.approx([2 * 12 / 14] * 2 + [12 / 14] * 10)
    assert chosen.weights.mean() == pytest.approx(1.0)
    assert chosen.note == "Members of slices count 2 times: 2 of 12 samples."
    assert not UpWeightRepairer().is_baseline


def test_select__only_in_their_class_and_once(training, make_slice):
    """Wet apples are in two slices; nothing that is green or wet and a pear is meant."""
    slices = [make_slice(), make_slice("wet"), make_slice("wet", method="other")]
    weights = _select(slices, training, factor=5.0).weights
    assert weights / weights[2] == pytest.approx([5.0] * 2 + [1.0] * 4 + [5.0] * 2 + [1.0] * 4)


def test_select__graded_by_depth(make_slice):
    """Depths 3, 1, 2 and 0.5 along the direction; members from 1 on, and the shallowest of them counts once."""
    dataset = dataset_from_columns(class_names=["apple", "pear"], labels=[0, 0, 0, 0, 1])
    embeddings = np.array([[3.0], [1.0], [2.0], [0.5], [9.0]], dtype=np.float32)
    space = EmbeddingSpace(encoder_id="e", embeddings=embeddings)
    training = SampleSet(dataset=dataset, rows=np.arange(5), spaces={"clip": space})
    found = make_slice(
        rule=LinearRule(encoder_id="e", direction=(1.0,), threshold=1.0, normalise=False)
    )
    chosen = _select([found], training, factor=4.0, is_graded=True)
    assert chosen.weights / chosen.weights[3] == pytest.approx([4.0, 1.0, 2.5, 1.0, 1.0])
    assert "up to 4 times, the deeper the more" in chosen.note


def test_select__graded_without_different_scores_is_the_whole_factor(training, make_slice):
    assert _select([make_slice()], training, is_graded=True).weights == pytest.approx(
        _select([make_slice()], training).weights
    )
