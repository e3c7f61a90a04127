import numpy as np
import pytest

from weakspot.core.errors import DataError
from weakspot_lab.small_networks import NetworkPlan, train_network

PLAN = NetworkPlan(width=8, n_epochs=4, batch_size=16, peak_epoch=1.0, seed=3)


@pytest.fixture(scope="module")
def points():
    draws = np.random.default_rng(0)
    labels = np.arange(120) % 2
    return (draws.standard_normal((120, 6)) + 2.0 * labels[:, None]).astype(np.float32), labels


def test_train_network__learns_and_repeats(points):
    first, again = (train_network(*points, n_classes=2, plan=PLAN) for _ in range(2))
    assert np.mean(first.probabilities(points[0]).argmax(axis=1) == points[1]) > 0.9
    np.testing.assert_array_equal(first.probabilities(points[0]), again.probabilities(points[0]))


def test_train_network__weights_decide_what_is_learnt(points):
    inputs, labels = points
    weights = np.where(labels == 1, 1.0, 0.0)
    found = train_network(inputs, labels, n_classes=2, plan=PLAN, weights=weights)
    assert (found.probabilities(inputs).argmax(axis=1) == 1).all()


def test_train_network__keeps_earlier_epochs(points):
    found = train_network(*points, n_classes=2, plan=PLAN, keep_epochs=(1, 4))
    assert sorted(found.kept) == [1, 4]
    assert not np.array_equal(
        found.kept[1].probabilities(points[0]), found.probabilities(points[0])
    )
    np.testing.assert_allclose(
        found.kept[4].probabilities(points[0]), found.probabilities(points[0]), atol=1e-6
    )


def test_train_network__images_and_the_generalised_loss():
    images = np.zeros((24, 8, 8, 3), dtype=np.uint8)
    images[::2, :, :, 0] = 255
    labels = np.arange(24) % 2
    plan = NetworkPlan(width=4, n_epochs=6, batch_size=8, loss="generalised", peak_epoch=1.0)
    found = train_network(images, labels, n_classes=2, plan=plan)
    assert found.features(images).shape == (24, 16)
    assert (found.probabilities(images).argmax(axis=1) == labels).all()


def test_train_network__labels_of_another_length(points):
    with pytest.raises(DataError, match="one label"):
        train_network(points[0], points[1][:5], n_classes=2, plan=PLAN)


def test_train_network__several_labels_have_a_sigmoid_each(points):
    inputs, labels = points
    several = np.column_stack([labels == 1, labels == 0, np.ones(len(labels))]).astype(bool)
    found = train_network(inputs, several, n_classes=3, plan=PLAN, keep_epochs=(4,))
    said = found.probabilities(inputs)
    assert np.mean((said > 0.5) == several) > 0.8
    assert said[:, 2].min() > 0.5
    np.testing.assert_allclose(found.kept[4].probabilities(inputs), said, atol=1e-6)
