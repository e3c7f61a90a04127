"""A kind of membership rule that weakspot does not have."""

from typing import Literal

import numpy as np

from weakspot.core.arrays import DoubleArray, FloatArray, IntArray
from weakspot.core.record import PackedArray
from weakspot.core.rules import ThresholdRule, refuse_other_encoder
from weakspot.core.samples import SampleSet


class NearerRule(ThresholdRule):
    """Members are the samples that lie nearer to the mean of the failures than to the mean of the others.

    Args:
        space: which embeddings are read.
        encoder_id: the encoder that made the means.
        failures: mean of the failures [d].
        others: mean of the other samples [d].
    """

    kind: Literal["weakspot-centroids/nearer"] = "weakspot-centroids/nearer"
    space: str = "clip"
    encoder_id: str
    failures: PackedArray
    others: PackedArray

    def scores(self, samples: SampleSet, rows: IntArray) -> DoubleArray:
        """Return how much nearer to the failures every row lies."""
        refuse_other_encoder(samples, self.space, self.encoder_id)
        return samples.by_blocks(self.space, rows, self._leads)

    def _leads(self, embeddings: FloatArray) -> DoubleArray:
        distances = [
            np.square(embeddings.astype(np.float64) - mean.values).sum(axis=1)
            for mean in (self.others, self.failures)
        ]
        return np.asarray(distances[0] - distances[1])

    @property
    def sentence(self) -> str:
        """Who belongs to the slice, for people."""
        return "Samples that lie nearer to the mean of the failures than to the mean of the others."
