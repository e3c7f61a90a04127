import numpy as np
import pytest
from tests import build

from weakspot.core.dataset import dataset_from_columns
from weakspot.core.failures import FailureCriterion
from weakspot.core.samples import SampleSet
from weakspot.discover.prediction_order import ConfidenceDiscoverer, LossDiscoverer

TOP_1 = FailureCriterion()
PROBABILITIES = np.array(
    [[0.9, 0.1], [0.2, 0.8], [0.55, 0.45], [0.05, 0.95], [0.3, 0.7], [0.6, 0.4], [0.1, 0.9]],
    dtype=np.float32,
)
LABELS = [0, 0, 0, 0, 1, 1, 1]


def _samples(probabilities=PROBABILITIES, predictions=None):
    return build.samples(
        LABELS,
        class_names=["cat", "dog"],
        probabilities=probabilities,
        predictions=predictions,
        rows=np.arange(7),
    )


def test_loss__as_many_members_as_failures():
    discovery = LossDiscoverer().discover(_samples(), TOP_1, seed=0)
    (found,) = discovery.slices
    assert (found.class_name, found.method, found.n_found) == ("cat", "loss", 2)
    assert found.members(_samples(), np.arange(4)).tolist() == [1, 3]
    assert found.rule.threshold == pytest.approx(-np.log(0.2), abs=1e-5)
    assert found.strength == pytest.approx(1.0)
    assert found.rule.reads_predictions
    (note,) = discovery.notes
    assert note.class_name == "dog"
    assert "1 of 3 samples failed" in note.note


def test_confidence__doubt_is_not_loss():
    (found,) = ConfidenceDiscoverer().discover(_samples(), TOP_1, seed=0).slices
    # Doubts of the cats: 0.1, 0.2, 0.45, 0.05; the two that failed are the second and the fourth.
    assert found.members(_samples(), np.arange(4)).tolist() == [1, 2]
    assert found.method == "confidence"
    assert found.strength == pytest.approx(0.0, abs=1e-9)


def test_baselines__are_baselines():
    assert ConfidenceDiscoverer().is_baseline
    assert LossDiscoverer().is_baseline


@pytest.mark.parametrize("method", [ConfidenceDiscoverer, LossDiscoverer])
def test_baselines__without_probabilities_every_class_gets_a_note(method):
    discovery = method().discover(_samples(None, np.array([0, 1, 0, 1, 1, 0, 1])), TOP_1, seed=0)
    assert discovery.slices == ()
    assert [note.class_name for note in discovery.notes] == ["cat", "dog"]
    assert "probabilities are not known" in discovery.notes[0].note


@pytest.mark.parametrize("method", [ConfidenceDiscoverer, LossDiscoverer])
def test_baselines__multi_label_gets_notes(method):
    dataset = dataset_from_columns(
        class_names=["cat", "dog"],
        label_lists=[[0], [1], [0, 1], [], [0], [1], [0]],
        probabilities=PROBABILITIES,
    )
    discovery = method().discover(SampleSet(dataset=dataset, rows=np.arange(7)), TOP_1, seed=0)
    assert discovery.slices == ()
    assert [note.class_name for note in discovery.notes] == ["cat", "no cat", "dog", "no dog"]
    assert "single-label" in discovery.notes[0].note
