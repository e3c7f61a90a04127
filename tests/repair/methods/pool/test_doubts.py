import numpy as np
import pytest

from weakspot.repair.strategies.pool import high_entropy, low_confidence, small_margin

THREE = np.array([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0], [0.4, 0.4, 0.2]])
LABELS = np.array([[0.9, 0.6], [0.1, 0.2], [1.0, 0.0]])
THRESHOLDS = np.array([0.5, 0.55], dtype=np.float32)


def test_low_confidence__of_the_likeliest_answer():
    assert low_confidence(THREE, None) == pytest.approx([-0.5, -1.0, -0.4])
    # The likeliest sets have the probabilities 0.9 * 0.6, 0.9 * 0.8 and 1.
    assert low_confidence(LABELS, THRESHOLDS) == pytest.approx([-np.log(0.54), -np.log(0.72), 0.0])


def test_small_margin__of_the_two_likeliest_or_to_the_threshold():
    assert small_margin(THREE, None) == pytest.approx([-0.2, -1.0, 0.0])
    assert small_margin(LABELS, THRESHOLDS) == pytest.approx([-0.05, -0.35, -0.5])
    assert small_margin(np.array([[0.3], [0.9]]), None).tolist() == [-0.3, -0.9]


def test_high_entropy__certainty_has_none_and_raises_no_warning():
    assert high_entropy(THREE, None) == pytest.approx([1.0297, 0.0, 1.0549], abs=1e-4)
    assert high_entropy(LABELS, THRESHOLDS) == pytest.approx(
        [0.3251 + 0.6730, 0.3251 + 0.5004, 0.0], abs=1e-4
    )
