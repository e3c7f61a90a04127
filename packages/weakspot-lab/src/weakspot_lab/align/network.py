"""The text side: a small network, and the losses it is trained with."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import AnyArray, BoolArray, FloatArray

Weights = dict[str, FloatArray]

DECAYED = ("linear", "hidden_in", "hidden_out")


@dataclass(frozen=True, eq=False)
class Pass:
    """What a forward pass leaves behind for the gradients."""

    inputs: FloatArray
    hidden: FloatArray
    lengths: FloatArray
    outputs: FloatArray


def initial_weights(
    linear: FloatArray, bias: FloatArray, hidden: int, rng: np.random.Generator
) -> Weights:
    """Start from a linear map; the hidden layer begins by adding nothing."""
    sentence, image = linear.shape
    return {
        "linear": linear.astype(np.float32),
        "bias": bias.astype(np.float32),
        "hidden_in": (rng.standard_normal((sentence, hidden)) * np.sqrt(2.0 / sentence)).astype(
            np.float32
        ),
        "hidden_bias": np.zeros(hidden, dtype=np.float32),
        "hidden_out": np.zeros((hidden, image), dtype=np.float32),
    }


def forward(weights: Weights, inputs: FloatArray) -> Pass:
    """Map centred sentence embeddings [m, s] to unit vectors [m, d]."""
    hidden = np.maximum(inputs @ weights["hidden_in"] + weights["hidden_bias"], 0.0)
    raw = inputs @ weights["linear"] + hidden @ weights["hidden_out"] + weights["bias"]
    lengths = np.maximum(np.linalg.norm(raw, axis=1, keepdims=True), 1e-6)
    return Pass(inputs, hidden, lengths, raw / lengths)


def backward(weights: Weights, made: Pass, slope: FloatArray) -> Weights:
    """Turn the slope of the loss at the outputs [m, d] into slopes of the weights."""
    along = (slope * made.outputs).sum(axis=1, keepdims=True)
    raw = (slope - along * made.outputs) / made.lengths
    hidden = (raw @ weights["hidden_out"].T) * (made.hidden > 0)
    return {
        "linear": made.inputs.T @ raw,
        "bias": raw.sum(axis=0),
        "hidden_in": made.inputs.T @ hidden,
        "hidden_bias": hidden.sum(axis=0),
        "hidden_out": made.hidden.T @ raw,
    }


class Adam:
    """Adam with decoupled weight decay (Kingma and Ba 2015; Loshchilov and Hutter 2019)."""

    def __init__(self, weights: Weights, *, weight_decay: float) -> None:
        self._first = {name: np.zeros_like(value) for name, value in weights.items()}
        self._second = {name: np.zeros_like(value) for name, value in weights.items()}
        self._decay = weight_decay
        self._step = 0

    def update(self, weights: Weights, slopes: Weights, rate: float) -> None:
        """Change the weights in place by one step."""
        self._step += 1
        for name, slope in slopes.items():
            first, second = self._first[name], self._second[name]
            first += 0.1 * (slope - first)
            second += 0.02 * (slope * slope - second)
            moved = (first / (1 - 0.9**self._step)) / (
                np.sqrt(second / (1 - 0.98**self._step)) + 1e-8
            )
            if name in DECAYED:
                moved = moved + self._decay * weights[name]
            weights[name] -= (rate * moved).astype(np.float32)


def _softmax(scores: FloatArray, axis: int) -> FloatArray:
    shifted: FloatArray = np.exp(scores - scores.max(axis=axis, keepdims=True))
    shares: FloatArray = shifted / shifted.sum(axis=axis, keepdims=True)
    return shares


def contrastive(
    texts: FloatArray, images: FloatArray, belong: BoolArray, *, temperature: float
) -> tuple[float, FloatArray]:
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
    weight = yes / np.maximum(yes.sum(axis=1, keepdims=True), 1) + no / np.maximum(
        no.sum(axis=1, keepdims=True), 1
    )
    weight = weight * usable[:, None] / (2 * max(1, int(usable.sum())))
    guess = 1.0 / (1.0 + np.exp(-np.clip(scores, -30, 30)))
    loss = -float((weight * np.where(yes, np.log(guess + 1e-12), np.log(1 - guess + 1e-12))).sum())
    slope = (weight * (guess - yes)).astype(np.float32)
    return loss, scale * (slope @ images), slope.sum(axis=1)
