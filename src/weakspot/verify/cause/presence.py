"""How common in training is what sets the failures of a slice apart, where a rule on embeddings takes in other samples, too.

A rule that was fitted to failures has a blurred edge: part of its members are not of the failing kind, and they are as common in
training as in evaluation. Deep inside the slice, where failing members lie, there are fewer of them. So shares are compared there, on
the training samples and the evaluation samples of the class at equal depth.
"""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import BoolArray, DoubleArray
from weakspot.core.evidence import Share

LEAST_DEEP = 3


@dataclass(frozen=True, kw_only=True)
class Presence:
    """Members deep inside a slice, at least as deep as half of its failing members.

    Args:
        in_training: of the class's training samples.
        in_evaluation: of its evaluation samples.
        share: estimate of the kind's share of the class in training.
    """

    in_training: Share
    in_evaluation: Share
    share: float

    @property
    def ratio(self) -> float:
        """Return how common the kind is in training, as a part of how common it is in evaluation."""
        return self.in_training.value / self.in_evaluation.value


def presence_of(
    trained: DoubleArray,
    scores: DoubleArray,
    failed: BoolArray,
    inside: BoolArray,
    *,
    level: float,
    worth: tuple[float, float] = (1.0, 1.0),
) -> Presence | None:
    """Return how common the failing kind is, None if there are too few failing members to tell.

    Args:
        trained: scores of the class's training samples.
        scores: scores of its evaluation samples [n].
        failed: which of these failed [n].
        inside: which of these are members [n].
        level: of the intervals.
        worth: how many independent samples one is worth, in training and in evaluation.
    """
    failing = scores[failed & inside]
    if len(failing) < LEAST_DEEP or not len(trained):
        return None
    depth = float(np.median(failing))
    deep = scores >= depth
    in_training = Share.of(
        int((trained >= depth).sum()),
        len(trained),
        level=level,
        effective=worth[0] * len(trained),
    )
    in_evaluation = Share.of(
        int(deep.sum()), len(scores), level=level, effective=worth[1] * len(scores)
    )
    # If the kind fails at the rate seen deep inside and the rest at that outside, the class's own rate tells the kind's share.
    rate, rest = (
        float(failed[deep].mean()),
        float(failed[~inside].mean()) if (~inside).any() else 0.0,
    )
    kind = (float(failed.mean()) - rest) / max(rate - rest, 1e-9)
    kind = float(np.clip(kind, in_evaluation.value, 1.0))
    ratio = in_training.value / in_evaluation.value
    return Presence(in_training=in_training, in_evaluation=in_evaluation, share=ratio * kind)
