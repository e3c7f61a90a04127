import numpy as np
import pytest

from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError, ModelError
from weakspot.core.heads import Head


def test_probabilities__softmax_by_hand():
    head = Head(
        weights=np.array([[1.0, 0.0], [0.0, 2.0]], dtype=np.float32),
        bias=np.array([0.0, np.log(2)], dtype=np.float32),
    )
    features = np.array([[0.0, 0.0], [np.log(2), 0.0]], dtype=np.float32)
    np.testing.assert_allclose(
        head.logits(features), [[0, np.log(2)], [np.log(2), np.log(2)]], atol=1e-6
    )
    np.testing.assert_allclose(
        head.probabilities(features), [[1 / 3, 2 / 3], [0.5, 0.5]], atol=1e-6
    )


def test_probabilities__one_sigmoid_a_label():
    head = Head(
        weights=np.eye(2, dtype=np.float32),
        bias=np.zeros(2, dtype=np.float32),
        task=Task.MULTI_LABEL,
    )
    found = head.probabilities(np.array([[np.log(3), -np.log(4)]], dtype=np.float32))
    np.testing.assert_allclose(found, [[0.75, 0.2]], atol=1e-6)


@pytest.mark.parametrize("task", list(Task))
def test_probabilities__huge_logits_stay_finite(task):
    head = Head(
        weights=np.array([[1e6], [-1e6]], dtype=np.float32),
        bias=np.zeros(2, dtype=np.float32),
        task=task,
    )
    np.testing.assert_allclose(
        head.probabilities(np.array([[1.0]], dtype=np.float32)), [[1.0, 0.0]], atol=1e-6
    )


def test_cooled__divides_logits_and_predicts_the_same():
    head = Head(
        weights=np.array([[3.0], [1.0]], dtype=np.float32),
        bias=np.array([0.0, 1.0], dtype=np.float32),
    )
    cooled = head.cooled(2.0)
    np.testing.assert_allclose(cooled.logits(np.array([[2.0]], dtype=np.float32)), [[3.0, 1.5]])
    np.testing.assert_allclose(
        cooled.probabilities(np.array([[2.0]], dtype=np.float32)),
        [[0.8175745, 0.1824255]],
        atol=1e-6,
    )
    assert cooled.weights.dtype == np.float32


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_cooled__refuses_temperatures_that_are_none(temperature):
    head = Head(weights=np.zeros((2, 1), dtype=np.float32), bias=np.zeros(2, dtype=np.float32))
    with pytest.raises(ConfigError, match="must be positive"):
        head.cooled(temperature)


def test_reordered__cases():
    names = ("apple", "pear")
    head = Head(
        weights=np.array([[1.0], [2.0]], dtype=np.float32),
        bias=np.array([0.5, -0.5], dtype=np.float32),
    )
    assert head.reordered(names, None) is head
    assert head.reordered(names, list(names)) is head
    turned = head.reordered(names, ["pear", "apple"])
    assert (turned.weights.tolist(), turned.bias.tolist()) == ([[2.0], [1.0]], [-0.5, 0.5])
    with pytest.raises(ModelError, match="same classes"):
        head.reordered(names, ["apple", "plum"])


def test_moved__a_share_of_the_way():
    old = Head(weights=np.zeros((2, 2), np.float32), bias=np.array([1, 0], np.float32))
    new = Head(weights=np.full((2, 2), 4, np.float32), bias=np.array([0, 1], np.float32))
    part = old.moved(new, 0.25)
    np.testing.assert_array_equal(part.weights, np.ones((2, 2)))
    np.testing.assert_array_equal(part.bias, [0.75, 0.25])
