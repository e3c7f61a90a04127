import numpy as np
import pytest

from weakspot.core.errors import DataError
from weakspot_lab.align.evaluation import (
    area_under_curve,
    class_embeddings,
    phrasings,
    recall_at,
    zero_shot_accuracy,
)

IMAGES = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]], dtype=np.float32)


def test_recall_at__counts_texts_whose_image_is_near_enough() -> None:
    texts = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]], dtype=np.float32)
    own = np.array([0, 1, 2])

    assert recall_at(1, texts, IMAGES, own) == pytest.approx(1 / 3)
    assert recall_at(2, texts, IMAGES, own) == pytest.approx(2 / 3)
    assert recall_at(3, texts, IMAGES, own) == 1.0


def test_recall_at__a_tie_does_not_count_as_found() -> None:
    images = np.array([[1.0, 0.0], [1.0, 0.0]], dtype=np.float32)

    assert recall_at(1, images[:1], images, np.array([0])) == 0.0


def test_zero_shot_accuracy__nearest_class_wins() -> None:
    classes = np.eye(2, dtype=np.float32)

    assert zero_shot_accuracy(IMAGES, classes, np.array([0, 1, 1])) == pytest.approx(2 / 3)
    assert zero_shot_accuracy(IMAGES, classes, np.array([0, 1, 1]), top=2) == 1.0


def test_class_embeddings__mean_of_the_phrases_at_unit_length() -> None:
    phrases = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]], dtype=np.float32)

    made = class_embeddings(phrases, 2)

    np.testing.assert_allclose(made, [[np.sqrt(0.5), np.sqrt(0.5)], [0.0, 1.0]], rtol=1e-6)


def test_class_embeddings__uneven_phrases() -> None:
    with pytest.raises(DataError, match="same number of phrases"):
        class_embeddings(np.zeros((3, 2), dtype=np.float32), 2)


def test_phrasings__article_follows_the_sound() -> None:
    assert phrasings("dog", ["{}", "a photo of a {}"]) == ["dog", "a photo of a dog"]
    assert phrasings("orange", ["{}", "a photo of a {}"]) == ["orange", "a photo of an orange"]


def test_area_under_curve__ties_count_half() -> None:
    scores = np.array([0.2, 0.5, 0.5, 0.9])
    positive = np.array([False, False, True, True])

    # Pairs: .5 > .2 yes, .5 against .5 half, .9 > .2 yes, .9 > .5 yes: 3.5 of 4.
    assert area_under_curve(scores, positive) == 0.875


def test_area_under_curve__one_kind_only() -> None:
    with pytest.raises(DataError, match="positive and negative"):
        area_under_curve(np.array([0.1, 0.2]), np.array([True, True]))
