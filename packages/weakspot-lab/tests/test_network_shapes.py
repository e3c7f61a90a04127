import numpy as np
import pytest

from weakspot.core.errors import ConfigError
from weakspot_lab.small_networks import SHAPES, ShapedPlan, train_small_network


@pytest.fixture(scope="module")
def squares():
    """Images whose class is the half that is bright."""
    labels = np.arange(96) % 2
    images = np.zeros((96, 32, 32, 3), dtype=np.uint8)
    images[labels == 0, :16] = 220
    images[labels == 1, 16:] = 220
    noise = np.random.default_rng(0).integers(0, 30, images.shape, dtype=np.uint8)
    return images + noise, labels


@pytest.mark.parametrize("shape", SHAPES)
def test_train_small_network__every_shape_has_four_features_a_channel(squares, shape):
    plan = ShapedPlan(shape=shape, width=4, epochs=1, batch=32)
    network = train_small_network(plan, *squares, n_classes=2)
    weights, bias = network.last_layer
    features = network.features(squares[0])
    assert features.shape == (96, 16)
    np.testing.assert_allclose(features @ weights.T + bias, network.logits(squares[0]), atol=1e-4)
    np.testing.assert_allclose(network.probabilities(squares[0]).sum(axis=1), 1.0, atol=1e-5)


def test_train_small_network__the_same_seed_gives_the_same_network(squares):
    plan = ShapedPlan(shape="dense", width=4, epochs=2, batch=32)
    first, second = (train_small_network(plan, *squares, n_classes=2) for _ in range(2))
    other = train_small_network(plan.again(1), *squares, n_classes=2)
    assert (first.logits(squares[0]) == second.logits(squares[0])).all()
    assert (first.logits(squares[0]) != other.logits(squares[0])).any()


def test_train_small_network__learns_and_goes_on_from_where_it_was(squares):
    images, labels = squares
    plan = ShapedPlan(shape="coarse", width=4, epochs=12, batch=32)
    network = train_small_network(plan, images, labels, n_classes=2)
    assert (network.logits(images).argmax(axis=1) == labels).mean() > 0.9
    before = network.logits(images)
    tuned = train_small_network(
        ShapedPlan(shape="coarse", width=4, epochs=1, learning_rate=1e-6),
        images,
        labels,
        n_classes=2,
        start=network,
    )
    assert (network.logits(images) == before).all()
    assert (tuned.logits(images).argmax(axis=1) == labels).mean() > 0.9


def test_network_plan__no_such_shape():
    with pytest.raises(ConfigError, match="shape must be one of"):
        ShapedPlan(shape="round")
