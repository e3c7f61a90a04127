"""Adding the pool samples of which the classifier is least sure, by margin, entropy or confidence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from weakspot.core.slices import FailureSlice
from weakspot.core.training_sets import RepairMaterial, TrainingSelection
from weakspot.repair.pool.added import refuse_unknown, with_added
from weakspot.repair.pool.candidates import Within, open_pool
from weakspot.repair.pool.doubts import Doubt, high_entropy, least_sure, low_confidence, small_margin


@dataclass(frozen=True, kw_only=True)
class MarginRepairer:
    """Adds the samples on which the two likeliest classes are closest (multi-label: a label is closest to its threshold).

    Args:
        within: the whole `pool`, or only what is inside the `slices`.
    """

    within: Within = "pool"

    is_baseline = False

    def __post_init__(self) -> None:
        """Refuse settings that cannot mean anything."""
        refuse_unknown("within", self.within, get_args(Within))

    def select(self, slices: Sequence[FailureSlice], material: RepairMaterial) -> TrainingSelection:
        """Return training rows and the pool rows with the smallest margin."""
        return _selection(slices, material, self.within, "pool-margin", small_margin)


@dataclass(frozen=True, kw_only=True)
class EntropyRepairer:
    """Adds the samples whose probabilities have the largest entropy (multi-label: summed over labels).

    Args:
        within: the whole `pool`, or only what is inside the `slices`.
    """

    within: Within = "pool"

    is_baseline = False

    def __post_init__(self) -> None:
        """Refuse settings that cannot mean anything."""
        refuse_unknown("within", self.within, get_args(Within))

    def select(self, slices: Sequence[FailureSlice], material: RepairMaterial) -> TrainingSelection:
        """Return training rows and the pool rows with the largest entropy."""
        return _selection(slices, material, self.within, "pool-entropy", high_entropy)


@dataclass(frozen=True, kw_only=True)
class ConfidenceRepairer:
    """Adds the samples whose likeliest answer has the lowest probability; what the true answer gets is never looked at.

    Args:
        within: the whole `pool`, or only what is inside the `slices`.
    """

    within: Within = "pool"

    is_baseline = False

    def __post_init__(self) -> None:
        """Refuse settings that cannot mean anything."""
        refuse_unknown("within", self.within, get_args(Within))

    def select(self, slices: Sequence[FailureSlice], material: RepairMaterial) -> TrainingSelection:
        """Return training rows and the pool rows with the lowest confidence."""
        return _selection(slices, material, self.within, "pool-confidence", low_confidence)


HOW = {
    "pool-margin": "by the smallest margin",
    "pool-entropy": "by the largest entropy",
    "pool-confidence": "by the lowest confidence",
}


def _selection(
    slices: Sequence[FailureSlice], material: RepairMaterial, within: Within, strategy: str, doubt: Doubt
) -> TrainingSelection:
    pool = open_pool(material, strategy)
    chosen = least_sure(pool.samples.dataset, pool.candidates(slices, within), doubt, strategy)[: pool.budget]
    return with_added(material, chosen, f"{HOW[strategy]} {'inside the slices' if within == 'slices' else 'in the whole pool'}")
