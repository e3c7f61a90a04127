import numpy as np
import pytest

from weakspot.core.arrays import generator
from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError, DataError
from weakspot.project.refine.training import mixed_features
from weakspot.repair.training.trainer import HeadTrainer

FEATURES = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 8.0]], dtype=np.float32)
CODES = np.array([0, 1, 2])


def test_mixed_features__lie_between_their_parents_and_carry_both_labels():
    mixed = mixed_features(FEATURES, CODES, n_mixed=200, random=generator(3, "mixing"))
    assert mixed.features.shape == (400, 2)
    assert np.array_equal(mixed.features[:200], mixed.features[200:])
    assert mixed.weights[:200] + mixed.weights[200:] == pytest.approx(np.ones(200))
    expected = (
        mixed.weights[:200, None] * FEATURES[mixed.targets[:200]]
        + mixed.weights[200:, None] * FEATURES[mixed.targets[200:]]
    )
    assert mixed.features[:200] == pytest.approx(expected, abs=1e-5)
    assert set(mixed.targets.tolist()) == {0, 1, 2}
    # Every share is as likely as any other.
    assert np.quantile(mixed.weights[:200], [0.25, 0.75]) == pytest.approx([0.25, 0.75], abs=0.1)


def test_mixed_features__two_rows_are_the_same_as_one_with_a_soft_target():
    mixed = mixed_features(FEATURES, CODES, n_mixed=50, random=generator(3, "mixing"))
    head = (
        HeadTrainer()
        .train(mixed.features, mixed.targets, mixed.weights, task=Task.SINGLE_LABEL, n_classes=3)
        .head
    )
    log_likelihoods = np.log(head.probabilities(mixed.features))
    soft = (
        mixed.weights[:50, None] * np.eye(3)[mixed.targets[:50]]
        + mixed.weights[50:, None] * np.eye(3)[mixed.targets[50:]]
    )
    hard = mixed.weights * log_likelihoods[np.arange(100), mixed.targets]
    assert hard.sum() == pytest.approx(float((soft * log_likelihoods[:50]).sum()), rel=1e-5)


def test_mixed_features__several_labels_a_sample():
    labels = np.array([[True, False], [True, True], [False, False]])
    mixed = mixed_features(FEATURES, labels, n_mixed=4, random=generator(3, "mixing"))
    assert mixed.targets.shape == (8, 2)
    assert mixed.targets.dtype == np.bool_


def test_mixed_features__same_seed_same_mixtures():
    first, again = (
        mixed_features(FEATURES, CODES, n_mixed=5, random=generator(3, "mixing")) for _ in range(2)
    )
    other = mixed_features(FEATURES, CODES, n_mixed=5, random=generator(4, "mixing"))
    assert np.array_equal(first.features, again.features)
    assert not np.array_equal(first.features, other.features)


def test_mixed_features__nothing_to_mix():
    with pytest.raises(DataError, match="one target each"):
        mixed_features(FEATURES[:0], CODES[:0], n_mixed=5, random=generator(3, "mixing"))
    with pytest.raises(DataError, match="one target each"):
        mixed_features(FEATURES, CODES[:2], n_mixed=5, random=generator(3, "mixing"))
    with pytest.raises(ConfigError, match="must be positive"):
        mixed_features(FEATURES, CODES, n_mixed=0, random=generator(3, "mixing"))
