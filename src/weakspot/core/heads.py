"""The last linear layer of a classifier: what repairs retrain and hand back."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from weakspot.core.arrays import FloatArray
from weakspot.core.dataset import Task
from weakspot.core.errors import ConfigError, ModelError


@dataclass(frozen=True, kw_only=True, eq=False)
class Head:
    """The last linear layer of a classifier.

    Args:
        weights: [c, d].
        bias: [c].
        task: softmax for single-label, one sigmoid per label for multi-label.
    """

    weights: FloatArray
    bias: FloatArray
    task: Task = Task.SINGLE_LABEL

    def logits(self, features: FloatArray) -> FloatArray:
        """Return logits [n, c] of features [n, d]."""
        return np.asarray(features @ self.weights.T + self.bias, dtype=np.float32)

    def probabilities(self, features: FloatArray) -> FloatArray:
        """Return probabilities [n, c] of features [n, d]."""
        logits = self.logits(features).astype(np.float64)
        if self.task is Task.MULTI_LABEL:
            return np.asarray(1.0 / (1.0 + np.exp(-np.clip(logits, -60, 60))), dtype=np.float32)
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True), dtype=np.float32)

    def reordered(self, class_names: Sequence[str], wanted: Sequence[str] | None) -> "Head":
        """Return the layer with its rows in another order of the same classes.

        Args:
            class_names: the classes in the order of its rows.
            wanted: the classes in the order wanted; None: as they are.

        Raises:
            ModelError: if the two do not name the same classes.
        """
        if wanted is None or tuple(wanted) == tuple(class_names):
            return self
        if sorted(wanted) != sorted(class_names):
            raise ModelError(
                "The head and the classifier do not have the same classes.",
                given=(list(class_names)[:10], list(wanted)[:10]),
            )
        place = {name: row for row, name in enumerate(class_names)}
        order = np.array([place[name] for name in wanted])
        return replace(self, weights=self.weights[order], bias=self.bias[order])

    def moved(self, towards: "Head", share: float) -> "Head":
        """Return the layer a share of the way, from 0 to 1, to another one."""
        return replace(
            self,
            weights=np.float32(1.0 - share) * self.weights + np.float32(share) * towards.weights,
            bias=np.float32(1.0 - share) * self.bias + np.float32(share) * towards.bias,
        )

    def cooled(self, temperature: float) -> "Head":
        """Return the layer whose logits are divided by a temperature; what it predicts stays the same."""
        if not temperature > 0:
            raise ConfigError("A temperature must be positive.", given=temperature)
        divided = np.float32(temperature)
        return replace(self, weights=self.weights / divided, bias=self.bias / divided)
