"""The penalty of a retrained layer, chosen on validation samples so that no group of them is forgotten."""

from collections.abc import Mapping, Sequence

import numpy as np

from weakspot.core.arrays import BoolArray, FloatArray, IntArray
from weakspot.core.heads import Head
from weakspot.core.samples import SampleSet
from weakspot.core.slices import FailureSlice
from weakspot.core.training_sets import class_parts

PENALTIES = (1e-3, 1e-2, 1e-1)
_DIGITS = 9


def groups_of(slices: Sequence[FailureSlice], samples: SampleSet) -> list[BoolArray]:
    """Return the parts that slices and classes cut labelled samples of a single-label task into [n each], without empty ones."""
    labels = samples.dataset.labels[samples.rows]
    parts = {one.class_name: one.groups for one in class_parts(slices, samples)}
    groups: list[BoolArray] = []
    for code, name in enumerate(samples.dataset.class_names):
        groups += (
            [np.isin(samples.rows, rows) for rows in parts[name]]
            if name in parts
            else [labels == code]
        )
    return [group for group in groups if group.any()]


def best_penalty(
    heads: Mapping[float, Head], features: FloatArray, labels: IntArray, groups: Sequence[BoolArray]
) -> float:
    """Return the penalty whose head has the largest mean accuracy over groups; of equals the largest penalty."""

    def worth(head: Head) -> float:
        right = head.logits(features).argmax(axis=1) == labels
        return round(float(np.mean([right[group].mean() for group in groups])), _DIGITS)

    return max(heads, key=lambda penalty: (worth(heads[penalty]), penalty))
