"""How much samples that come in groups count, where shares of two sets are compared."""

import numpy as np

from weakspot.core.arrays import IntArray
from weakspot.core.group_tests import effective_number
from weakspot.core.groups import several_to_a_group
from weakspot.core.samples import SampleSet


def worth_of(samples: SampleSet, rows: IntArray) -> float:
    """Return how many independent samples one of the rows is worth on average, 1 if every one is on its own."""
    groups = several_to_a_group(samples.dataset.groups[rows])
    everybody = np.ones(len(rows), dtype=np.bool_)
    return 1.0 if groups is None else effective_number(groups, everybody) / len(rows)
