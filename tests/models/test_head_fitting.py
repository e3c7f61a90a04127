from dataclasses import dataclass

import numpy as np
import pytest

from weakspot.core.dataset import Task
from weakspot.core.errors import ModelError
from weakspot.core.heads import Head
from weakspot.core.roles import ClassifierOutput
from weakspot.models.class_scores import check_repaired, difference_head, fitted_head, in_kind

HEAD = Head(
    weights=np.array([[1.0, -2.0], [0.5, 1.0], [0.0, 4.0]], np.float32),
    bias=np.array([0.5, 0.0, -1.0], np.float32),
)
FEATURES = np.array([[1.0, 2.0], [0.25, -0.5]], np.float32)
EPSILON = float(np.finfo(np.float32).eps)


@dataclass(frozen=True)
class Fixed:
    """A classifier that was read from somewhere: a head and what it says of two inputs."""

    head: Head | None
    features: np.ndarray | None
    answers: Head = HEAD

    def classify(self, prepared):
        probabilities = self.answers.probabilities(
            FEATURES if self.features is None else self.features
        )
        return ClassifierOutput(probabilities=probabilities, features=self.features)


def test_difference_head__second_against_first():
    pair = Head(weights=HEAD.weights[:2], bias=HEAD.bias[:2])
    single = difference_head(pair)
    assert single.weights.tolist() == [[-0.5, 3.0]]
    assert single.bias.tolist() == [-0.5]
    probability = 1 / (1 + np.exp(-(FEATURES @ single.weights[0] + single.bias[0])))
    np.testing.assert_allclose(probability, pair.probabilities(FEATURES)[:, 1], atol=1e-6)


def test_fitted_head__one_row_for_two_classes():
    pair = Head(weights=HEAD.weights[:2], bias=HEAD.bias[:2])
    assert fitted_head(pair, pair, None, is_single=True, where="m").weights.shape == (1, 2)
    assert fitted_head(HEAD, HEAD, None, is_single=False, where="m") is HEAD


def test_fitted_head__problems():
    with pytest.raises(ModelError, match=r"another last layer: it is frozen\..*Where: m"):
        fitted_head(HEAD, None, "it is frozen", is_single=False, where="m")
    many = Head(weights=HEAD.weights, bias=HEAD.bias, task=Task.MULTI_LABEL)
    with pytest.raises(
        ModelError, match=r"multi-label with 3 classes and 2 features.*single-label \(3, 2\)"
    ):
        fitted_head(HEAD, many, None, is_single=False, where="m")


def test_in_kind__rounds_and_refuses():
    assert in_kind(np.array([1.0001], np.float32), np.float16, where="m").tolist() == [1.0]
    with pytest.raises(ModelError, match=r"too large for float16.*70000"):
        in_kind(np.array([7e4], np.float32), np.float16, where="m")


def test_check_repaired__the_same_but_for_the_layer():
    check_repaired(
        Fixed(HEAD, FEATURES), Fixed(HEAD, FEATURES.copy()), HEAD, list(FEATURES), epsilon=EPSILON
    )


def test_check_repaired__what_changed_is_named():
    before = Fixed(HEAD, FEATURES)
    other = Head(weights=HEAD.weights * np.float32(1.01), bias=HEAD.bias)
    moved = np.nextafter(FEATURES, np.float32(9))
    for after, message in (
        (Fixed(None, FEATURES), "last layer does not give its probabilities"),
        (Fixed(other, FEATURES), "does not hold the numbers of the head"),
        (Fixed(HEAD, None), "features under the layer are gone"),
        (Fixed(HEAD, moved), "features under the layer changed"),
        (Fixed(HEAD, FEATURES, answers=other), "probabilities are not those of the head"),
    ):
        with pytest.raises(ModelError, match=message):
            check_repaired(before, after, HEAD, list(FEATURES), epsilon=EPSILON)
    check_repaired(
        before, Fixed(HEAD, moved), HEAD, list(FEATURES), epsilon=EPSILON, is_exact=False
    )
