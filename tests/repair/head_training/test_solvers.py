import numpy as np
import pytest
from tests.build import trained

from weakspot.core.heads import Head


def _by_hand(features, codes, weights, *, n_classes, n_epochs):
    """Rate 0.2, momentum 0.9 and weight decay 5e-4 on weights and biases alike, in double precision, from nothing."""
    inputs, shares = (
        np.column_stack([features, np.ones(len(features))]).astype(np.float64),
        weights / weights.sum(),
    )
    layer = velocity = np.zeros((n_classes, inputs.shape[1]))
    for _ in range(n_epochs):
        powers = np.exp(inputs @ layer.T)
        residuals = powers / powers.sum(axis=1, keepdims=True) - np.eye(n_classes)[codes]
        velocity = 0.9 * velocity + (residuals * shares[:, None]).T @ inputs + 5e-4 * layer
        layer = layer - 0.2 * velocity
    return layer[:, :-1], layer[:, -1]


def test_train__sgd_follows_the_rule_of_the_paper(make_features):
    features, codes = make_features(200, 6, 4)
    weights = np.where(codes == 2, 5.0, 1.0)
    features = (features - features.mean(axis=0)).astype(np.float32)
    settings = {"penalty": 5e-4, "solver": "sgd", "n_epochs": 60}
    found = trained(features, codes, weights, trainer=settings)
    by_weights, by_bias = _by_hand(features, codes, weights, n_classes=4, n_epochs=60)
    assert found.n_steps == 60
    assert not found.has_converged
    assert found.head.weights == pytest.approx(by_weights, abs=1e-4)
    assert found.head.bias == pytest.approx(by_bias, abs=1e-4)


def test_train__sgd_comes_near_the_exact_loss(make_features):
    features, codes = make_features(300, 5, 3)
    scaled = ((features - features.mean(axis=0)) / features.std(axis=0)).astype(np.float32)
    slow, exact = (
        trained(scaled, codes, trainer={"penalty": 1e-3, "solver": solver}).loss
        for solver in ("sgd", "exact")
    )
    assert slow == pytest.approx(exact, rel=1e-3)
    assert exact <= slow


def test_train__sgd_starts_from_a_head_and_is_pulled_to_it(make_features):
    features, codes = make_features(60, 5, 3)
    start = Head(
        weights=np.full((3, 5), 0.3, np.float32), bias=np.array([1.0, 0.0, -1.0], np.float32)
    )
    pulled = {"penalty": 4.0, "towards": "start", "solver": "sgd", "n_epochs": 200}
    hardly = {"solver": "sgd", "n_epochs": 1, "learning_rate": 1e-9}
    found, other = (
        trained(features, codes, trainer=settings, start=start) for settings in (pulled, hardly)
    )
    assert found.head.weights == pytest.approx(start.weights, abs=0.15)
    assert found.loss < other.loss
