"""Adding the pool samples of which the classifier is least sure, by margin, entropy or confidence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from weakspot.core.slices import FailureSlice
from weakspot.core.training_sets import RepairMaterial, TrainingSelection
from weakspot.repair.methods.pool.added import PoolScope, with_added
from weakspot.repair.methods.pool.candidates import open_pool
from weakspot.repair.methods.pool.doubts import (
    Doubt,
    high_entropy,
    least_sure,
    low_confidence,
    small_margin,
)

DOUBTS: Mapping[str, tuple[Doubt, str]] = {
    "pool-margin": (small_margin, "by the smallest margin"),
    "pool-entropy": (high_entropy, "by the largest entropy"),
    "pool-confidence": (low_confidence, "by the lowest confidence"),
}


@dataclass(frozen=True, kw_only=True)
class _LeastSureRepairer(PoolScope):
    strategy: ClassVar[str]

    def select(self, slices: Sequence[FailureSlice], material: RepairMaterial) -> TrainingSelection:
        """Return training rows and the pool rows of which the classifier is least sure; the seed has no influence."""
        doubt, how = DOUBTS[self.strategy]
        pool = open_pool(material, self.strategy)
        candidates = pool.candidates(slices, self.within)
        chosen = least_sure(pool.samples.dataset, candidates, doubt, self.strategy)[: pool.budget]
        return with_added(material, chosen, f"{how} {self.place}")


@dataclass(frozen=True, kw_only=True)
class MarginRepairer(_LeastSureRepairer):
    """Adds the samples on which the two likeliest classes are closest (multi-label: a label is closest to its threshold).

    >>> from weakspot.testing.examples import repair_example
    >>> slices, material = repair_example()
    >>> MarginRepairer().select(slices, material).note
    'Pool samples added to the 404 training samples: 5, chosen by the smallest margin in the whole pool.'
    """

    strategy = "pool-margin"


@dataclass(frozen=True, kw_only=True)
class EntropyRepairer(_LeastSureRepairer):
    """Adds the samples whose probabilities have the largest entropy (multi-label: summed over labels).

    >>> from weakspot.testing.examples import repair_example
    >>> slices, material = repair_example()
    >>> EntropyRepairer().select(slices, material).note
    'Pool samples added to the 404 training samples: 5, chosen by the largest entropy in the whole pool.'
    """

    strategy = "pool-entropy"


@dataclass(frozen=True, kw_only=True)
class ConfidenceRepairer(_LeastSureRepairer):
    """Adds the samples whose likeliest answer has the lowest probability; what the true answer gets is never looked at.

    >>> from weakspot.testing.examples import repair_example
    >>> slices, material = repair_example()
    >>> ConfidenceRepairer().select(slices, material).note
    'Pool samples added to the 404 training samples: 5, chosen by the lowest confidence in the whole pool.'
    """

    strategy = "pool-confidence"
