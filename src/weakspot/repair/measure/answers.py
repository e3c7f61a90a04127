"""What a retrained classifier says of the samples it is measured on."""

from dataclasses import dataclass

import numpy as np

from weakspot.core.arrays import FloatArray
from weakspot.core.errors import DataError
from weakspot.core.samples import SampleSet


@dataclass(frozen=True, kw_only=True, eq=False)
class ArmAnswers:
    """What a retrained classifier says of the measured samples.

    Args:
        arm: registered name of the strategy, or of the baseline.
        is_baseline: whether it only stands there for comparison.
        note: what was done, in a sentence.
        n_trained: samples trained on.
        probabilities: [n, c] of the measured rows, in their order.
        thresholds: multi-label decision threshold of every class [c]; the data set's own by default.
        n_added: samples among the trained ones that came from the pool.
        n_synthetic: generated samples among them.
        temperature: what logits were divided by to calibrate them, None if they were not.
    """

    arm: str
    is_baseline: bool
    note: str
    n_trained: int
    probabilities: FloatArray
    thresholds: FloatArray | None = None
    n_added: int = 0
    n_synthetic: int = 0
    temperature: float | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Elsewhere:
    """What the same classifier says of a further set: the discovery half (seed) or the confirmation half (held-out).

    Args:
        samples: the set.
        probabilities: [n, c] of its rows, in their order.
    """

    samples: SampleSet
    probabilities: FloatArray


def check_probabilities(probabilities: FloatArray, samples: SampleSet) -> None:
    """Refuse probabilities that do not belong to the samples.

    Raises:
        DataError: if their shape is another one, or one of them is not a number.
    """
    wanted = (len(samples), samples.dataset.n_classes)
    if probabilities.shape != wanted:
        raise DataError(
            "There must be one row of probabilities for every measured sample, and one column for every class.",
            where=samples.name,
            given=probabilities.shape,
            fix=f"Give an array of shape {wanted}.",
        )
    is_bad = ~np.isfinite(probabilities).all(axis=1)
    if is_bad.any():
        raise DataError(
            f"{int(is_bad.sum())} measured samples have no usable probabilities after the repair.",
            where=samples.name,
            given=samples.dataset.sample_ids(samples.rows[is_bad][:5]),
            fix="Leave out samples whose features are not known.",
        )
