import numpy as np
import pytest

from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError, ModelError
from weakspot.core.heads import Head
from weakspot.models.class_scores import (
    checked_features,
    checked_probabilities,
    head_explains,
    looks_like_probabilities,
    paired_head,
    paired_scores,
    parsed_class_names,
    parsed_score_kind,
    parsed_task,
    probabilities_from,
    sigmoid,
    softmax,
)

SINGLE, MULTI = Task.SINGLE_LABEL, Task.MULTI_LABEL


def _checked(values, n_rows=1, names=("a", "b"), task=SINGLE):
    return checked_probabilities(values, n_rows=n_rows, class_names=names, task=task, where="m")


def test_softmax__huge_logits():
    np.testing.assert_allclose(softmax(np.array([[1000.0, 1000.0, -1000.0]])), [[0.5, 0.5, 0.0]])
    np.testing.assert_allclose(softmax(np.array([[0.0, np.log(3.0)]])), [[0.25, 0.75]], atol=1e-7)


def test_sigmoid__huge_logits():
    np.testing.assert_allclose(
        sigmoid(np.array([-1000.0, 0.0, np.log(3.0), 1000.0])), [0.0, 0.5, 0.75, 1.0], atol=1e-7
    )


def test_checked_probabilities__rounding_is_mended():
    found = _checked([[0.3, 0.701]])
    np.testing.assert_allclose(found.sum(), 1.0, atol=1e-7)
    assert found.dtype == np.float32


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.5, 0.5], "wrong shape"),
        ([[0.5, 0.5], [0.5, 0.5]], "there are 1 images"),
        ([[0.2, 0.3, 0.5]], "3 probabilities an image, but there are 2 class names"),
        ([[float("nan"), 1.0]], "NaN or infinity"),
        ([[-0.5, 1.5]], "outside 0 to 1"),
        ([[0.5, 0.9]], "sum to 1.4, not to 1"),
        ([["x", "y"]], "no table of numbers"),
        ([[]], "wrong shape"),
    ],
)
def test_checked_probabilities__nonsense(values, message):
    with pytest.raises(ModelError, match=message):
        _checked(values)


def test_checked_probabilities__multi_label_need_not_sum_to_one():
    np.testing.assert_allclose(_checked([[0.9, 0.8]], task=MULTI), [[0.9, 0.8]], atol=1e-7)


def test_checked_features__none_and_wrong():
    assert checked_features(None, n_rows=1, where="m") is None
    with pytest.raises(ModelError, match="features have the wrong shape"):
        checked_features([[1.0], [2.0]], n_rows=1, where="m")


def test_looks_like_probabilities__cases():
    assert looks_like_probabilities(np.array([[0.25, 0.75]]), SINGLE)
    assert not looks_like_probabilities(np.array([[0.25, 0.25]]), SINGLE)
    assert looks_like_probabilities(np.array([[0.25, 0.25]]), MULTI)
    assert not looks_like_probabilities(np.array([[-0.25, 1.25]]), SINGLE)


def test_head_explains__other_layer_is_refused():
    head = Head(
        weights=np.array([[0.01, 0.0], [0.0, 0.01]], np.float32), bias=np.zeros(2, np.float32)
    )
    features = np.array([[1.0, 2.0], [3.0, -1.0]], np.float32)
    assert head_explains(head, features, features * 0.01, "logits")
    assert not head_explains(head, features, features * 0.012, "logits")
    assert head_explains(
        head, features, probabilities_from(features * 0.01, "logits", SINGLE), "probabilities"
    )
    assert not head_explains(head, features[:, :1], features * 0.01, "logits")


def test_paired__one_output_for_two_classes():
    np.testing.assert_allclose(paired_scores(np.array([[0.2]]), "probabilities"), [[0.8, 0.2]])
    head = paired_head(
        Head(weights=np.array([[2.0]], np.float32), bias=np.array([1.0], np.float32))
    )
    np.testing.assert_allclose(
        head.probabilities(np.array([[0.5]], np.float32))[0, 1], 1 / (1 + np.exp(-2.0)), atol=1e-6
    )


def test_parsed__bad_settings():
    with pytest.raises(ConfigError, match="single-label"):
        parsed_task("both")
    with pytest.raises(ConfigError, match="probabilities"):
        parsed_score_kind("percent")
    with pytest.raises(ConfigError, match="same class name"):
        parsed_class_names(["a", "b", "a"])
    with pytest.raises(ConfigError, match="list of strings"):
        parsed_class_names("ab")
    assert parsed_class_names([]) is None
