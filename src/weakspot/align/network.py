"""The trainable form of a text projection: forward pass, gradients, update rule."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import FloatArray

Weights = dict[str, FloatArray]

DECAYED = ("linear", "hidden_in", "hidden_out")


@dataclass(frozen=True, eq=False)
class Pass:
    """What a forward pass leaves behind for the gradients."""

    inputs: FloatArray
    hidden: FloatArray
    lengths: FloatArray
    outputs: FloatArray


def initial_weights(linear: FloatArray, bias: FloatArray, hidden: int, rng: np.random.Generator) -> Weights:
    """Start from a linear map; the hidden layer begins by adding nothing."""
    sentence, image = linear.shape
    return {
        "linear": linear.astype(np.float32),
        "bias": bias.astype(np.float32),
        "hidden_in": (rng.standard_normal((sentence, hidden)) * np.sqrt(2.0 / sentence)).astype(np.float32),
        "hidden_bias": np.zeros(hidden, dtype=np.float32),
        "hidden_out": np.zeros((hidden, image), dtype=np.float32),
    }


def forward(weights: Weights, inputs: FloatArray) -> Pass:
    """Map centred sentence vectors [m, s] to unit vectors [m, d]."""
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
            moved = (first / (1 - 0.9**self._step)) / (np.sqrt(second / (1 - 0.98**self._step)) + 1e-8)
            if name in DECAYED:
                moved = moved + self._decay * weights[name]
            weights[name] -= (rate * moved).astype(np.float32)
