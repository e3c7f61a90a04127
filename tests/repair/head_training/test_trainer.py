"""The single-precision solver against a slow one in double precision."""

import numpy as np
import pytest

from weakspot.core.dataset import Task
from weakspot.repair.training.trainer import HeadTrainer


@pytest.mark.parametrize("decay", [0.5, 2.0])
@pytest.mark.parametrize("penalty", [1e-4, 1e-2])
def test_train__loss_is_that_of_double_precision(make_features, reference, decay, penalty):
    features, codes = make_features(800, 20, 6, decay=decay)
    weights = np.where(codes == 1, 8.0, 1.0)
    trained = HeadTrainer(penalty=penalty).train(
        features, codes, weights, task=Task.SINGLE_LABEL, n_classes=6
    )
    slow = reference(features, np.eye(6, dtype=bool)[codes], weights, penalty=penalty)
    lowest = slow.lowest()
    assert trained.has_converged
    assert trained.loss == pytest.approx(lowest, rel=1e-5)
    assert slow.of_head(trained.head) == pytest.approx(lowest, rel=1e-5)


def test_train__multi_label_loss_is_that_of_double_precision(make_features, reference):
    features, codes = make_features(600, 12, 5)
    targets = np.eye(5, dtype=bool)[codes] | np.eye(5, dtype=bool)[(codes * codes) % 5]
    trained = HeadTrainer(penalty=1e-3).train(
        features, targets, np.ones(600), task=Task.MULTI_LABEL
    )
    slow = reference(features, targets, np.ones(600), penalty=1e-3, is_softmax=False)
    assert slow.of_head(trained.head) == pytest.approx(slow.lowest(), rel=1e-5)


def test_train__many_classes_take_the_cheap_curvature_and_reach_the_same_loss(
    make_features, reference
):
    features, codes = make_features(900, 10, 70, apart=0.8)
    trained = HeadTrainer(penalty=1e-3).train(
        features, codes, np.ones(900), task=Task.SINGLE_LABEL, n_classes=70
    )
    slow = reference(features, np.eye(70, dtype=bool)[codes], np.ones(900), penalty=1e-3)
    assert slow.of_head(trained.head) == pytest.approx(slow.lowest(), rel=1e-5)


def test_train__more_features_than_samples_are_not_turned_and_reach_the_same_loss(
    make_features, reference
):
    features, codes = make_features(60, 90, 3)
    trained = HeadTrainer(penalty=1e-2).train(
        features, codes, np.ones(60), task=Task.SINGLE_LABEL, n_classes=3
    )
    slow = reference(features, np.eye(3, dtype=bool)[codes], np.ones(60), penalty=1e-2)
    assert slow.of_head(trained.head) == pytest.approx(slow.lowest(), rel=1e-5)


def test_train__far_from_zero_single_precision_still_suffices(make_features, reference):
    features, codes = make_features(400, 8, 4)
    far = (features + np.float32(4096.0)).astype(np.float32)
    trained = HeadTrainer(penalty=1e-3).train(
        far, codes, np.ones(400), task=Task.SINGLE_LABEL, n_classes=4
    )
    slow = reference(far, np.eye(4, dtype=bool)[codes], np.ones(400), penalty=1e-3)
    assert trained.loss == pytest.approx(slow.lowest(), rel=1e-5)


def test_train__a_loss_near_zero_is_followed_down(make_features, reference):
    features, codes = make_features(200, 30, 3, apart=2.0)
    trained = HeadTrainer(penalty=1e-5).train(
        features, codes, np.ones(200), task=Task.SINGLE_LABEL, n_classes=3
    )
    lowest = reference(features, np.eye(3, dtype=bool)[codes], np.ones(200), penalty=1e-5).lowest()
    assert lowest < 2e-3
    assert trained.loss == pytest.approx(lowest, rel=1e-3)
