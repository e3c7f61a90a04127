"""Losses between projected texts and images, each with its slope."""

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, FloatArray


def _softmax(scores: FloatArray, axis: int) -> FloatArray:
    shifted: FloatArray = np.exp(scores - scores.max(axis=axis, keepdims=True))
    shares: FloatArray = shifted / shifted.sum(axis=axis, keepdims=True)
    return shares


def contrastive(texts: FloatArray, images: FloatArray, belong: BoolArray, *, temperature: float) -> tuple[float, FloatArray]:
    """Symmetric contrastive loss where a text may belong to several images.

    Args:
        texts: Unit vectors [b, d].
        images: Unit vectors [b, d].
        belong: Which text belongs to which image [b, b]; every row and column has one.
        temperature: Similarities are divided by it.

    Returns:
        The loss and its slope at `texts` [b, d].
    """
    scores = (texts @ images.T) / temperature
    slope = np.zeros_like(scores)
    loss = 0.0
    for axis in (0, 1):
        target = belong / belong.sum(axis=axis, keepdims=True)
        guess = _softmax(scores, axis)
        loss -= float((target * np.log(guess + 1e-12)).sum()) / (2 * len(texts))
        slope += (guess - target) / (2 * len(texts) * temperature)
    return loss, slope.astype(np.float32) @ images


def presence(
    words: FloatArray, images: FloatArray, seen: AnyArray, offsets: FloatArray, *, scale: float
) -> tuple[float, FloatArray, FloatArray]:
    """Balanced logistic loss of "is this word seen in this image".

    Args:
        words: Unit vectors [k, d].
        images: Unit vectors [b, d].
        seen: [b, k] of 1, 0 and -1 (not known, left out).
        offsets: One threshold per word [k].
        scale: Similarities are multiplied by it.

    Returns:
        The loss, its slope at `words` [k, d] and its slope at `offsets` [k].
    """
    scores = scale * (words @ images.T) + offsets[:, None]
    yes, no = (seen.T == 1), (seen.T == 0)
    usable = yes.any(axis=1) & no.any(axis=1)
    weight = yes / np.maximum(yes.sum(axis=1, keepdims=True), 1) + no / np.maximum(no.sum(axis=1, keepdims=True), 1)
    weight = weight * usable[:, None] / (2 * max(1, int(usable.sum())))
    guess = 1.0 / (1.0 + np.exp(-np.clip(scores, -30, 30)))
    loss = -float((weight * np.where(yes, np.log(guess + 1e-12), np.log(1 - guess + 1e-12))).sum())
    slope = (weight * (guess - yes)).astype(np.float32)
    return loss, scale * (slope @ images), slope.sum(axis=1)
