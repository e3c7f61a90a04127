"""Figures of a text side: retrieval, zero-shot classification, probe words."""

from collections.abc import Sequence

import numpy as np
from scipy.stats import rankdata

from weakspot.core.arrays import AnyArray, BoolArray, FloatArray, unit_rows
from weakspot.core.errors import DataError

# How a class name is put into words; their mean is steadier than any one of them.
TEMPLATES = (
    "{}",
    "a photo of a {}",
    "a picture of a {}",
    "a close-up of a {}",
)


def recall_at(k: int, texts: FloatArray, images: FloatArray, own_image: AnyArray) -> float:
    """Share of texts [m, d] whose own image is among the k nearest images [n, d].

    An image that is as near as the own one counts as nearer.

    >>> recall_at(1, np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32), np.array([0, 0]))
    0.5
    """
    scores = texts @ images.T
    own = scores[np.arange(len(texts)), own_image]
    nearer_or_equal = (scores >= own[:, None]).sum(axis=1)
    return float((nearer_or_equal <= k).mean())


def phrasings(name: str, templates: Sequence[str] = TEMPLATES) -> list[str]:
    """Put a name into every template, with "an" where it is said.

    >>> phrasings("apple", ["a photo of a {}"])
    ['a photo of an apple']
    """
    article_fits = name[:1].lower() not in set("aeiou")
    return [
        template.format(name) if article_fits else template.replace(" a {}", " an {}").format(name)
        for template in templates
    ]


def class_embeddings(per_phrase: FloatArray, n_classes: int) -> FloatArray:
    """Average the phrase embeddings [c * t, d] of each class into unit vectors [c, d]."""
    if len(per_phrase) % n_classes:
        raise DataError(
            "Every class needs the same number of phrases.", given=(len(per_phrase), n_classes)
        )
    return unit_rows(per_phrase.reshape(n_classes, -1, per_phrase.shape[1]).mean(axis=1))


def zero_shot_accuracy(
    images: FloatArray, classes: FloatArray, labels: AnyArray, *, top: int = 1
) -> float:
    """Share of images [n, d] whose label is among the `top` nearest class embeddings [c, d]."""
    return recall_at(top, images, classes, labels)


def area_under_curve(scores: AnyArray, positive: BoolArray) -> float:
    """Probability that a positive sample scores above a negative one (ties count half).

    >>> area_under_curve(np.array([0.1, 0.4, 0.8]), np.array([False, True, True]))
    1.0
    """
    n_positive = int(positive.sum())
    n_negative = len(positive) - n_positive
    if n_positive == 0 or n_negative == 0:
        raise DataError(
            "The area under the curve needs positive and negative samples.",
            given=(n_positive, n_negative),
        )
    ranks = rankdata(scores)
    return float(
        (ranks[positive].sum() - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative)
    )
